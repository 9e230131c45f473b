"""A QEMU that refuses to save a guest: cells boot."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.lab.cell.binaries import Binaries
from fscost.lab.vm import qemu, snapshot
from fscost.lab.vm.confinement import Confinement
from fscost.lab.vm.guests import Guests
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.qmp import RefusedError

AGENT = Confinement(Path("/agent"))


class Machine:
    """A machine that boots, and whose state QEMU does not save."""

    def __init__(self, *_: object, **__: object) -> None:
        self.monitor = self

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def hello(self, _: float) -> SimpleNamespace:
        return SimpleNamespace(kernel="6.12.9")

    def add_stream(self, _: int) -> str:
        return "fd:state"

    def execute(self, command: str, **_: object) -> None:
        if command == "migrate":
            raise RefusedError("QEMU refused migrate: use file: instead")


def test_where_qemu_saves_nothing_cells_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(snapshot, "Qemu", Machine)
    monkeypatch.setattr(snapshot, "Port", lambda machine: machine)
    monkeypatch.setattr(snapshot.image, "wanted", lambda _: ())
    monkeypatch.setattr(snapshot.image, "build", lambda *_: b"an initramfs")
    (tmp_path / "vmlinux").write_bytes(b"a kernel")
    kernel = GuestKernel("6.12.9", tmp_path / "vmlinux", tmp_path)
    said: list[str] = []
    guests = Guests(Binaries(Path("/agent"), Path("/disk")), {}, said.append)
    monkeypatch.setattr(guests, "_confinement", AGENT)
    monkeypatch.setattr(guests, "_accelerator", qemu.EMULATION)
    monkeypatch.setattr(guests, "kernel", lambda _: kernel)
    for _ in range(2):
        how: dict[str, Any] = {}
        taken = guests.snapshot(None)
        assert isinstance(guests.start(None, taken, (), how), Machine)
        assert how["started"] == "booted: QEMU saved no snapshot"
    assert taken.kernel_version == "6.12.9"
    assert [line for line in said if "refused" in line] == [
        "QEMU refused migrate: use file: instead; so every cell boots its guest"
    ]
