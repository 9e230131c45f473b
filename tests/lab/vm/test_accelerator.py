"""One guest shows if KVM works; only the answer is kept."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fscost.errors import HostError
from fscost.lab.vm import accelerator, image, qemu
from fscost.lab.vm.confinement import Confinement
from fscost.lab.vm.kernels import GuestKernel

KERNEL, AGENT = (
    GuestKernel("6.12.9-test", Path("/dev/null"), Path("/modules")),
    Confinement(Path("/agent")),
)


class Guest:
    """A guest that answers, or hangs."""

    asked = 0
    trouble: str | None = None

    def __init__(
        self,
        machine: qemu.Machine,
        confinement: Confinement,
        _: object,
        descriptors: tuple[int, ...],
    ) -> None:
        assert machine.accelerator == qemu.KVM
        assert confinement == AGENT
        assert machine.initramfs == f"/proc/self/fd/{descriptors[1]}"
        assert Path(machine.initramfs).read_bytes() == b"an initramfs"
        Guest.asked += 1

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def hello(self, _: float) -> None:
        if self.trouble is not None:
            raise HostError(self.trouble)

    def blamed(self, error: HostError) -> HostError:
        return qemu.KilledError("killed by SIGKILL") if self.trouble == "killed" else error


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(accelerator.os, "access", lambda *_: True)
    monkeypatch.setattr(accelerator, "Qemu", Guest)
    monkeypatch.setattr(accelerator, "Port", lambda machine: machine)
    monkeypatch.setattr(image, "build", lambda *_: b"an initramfs")
    monkeypatch.setattr(Guest, "asked", 0)
    return tmp_path / "fscost" / "kvm"


@pytest.mark.parametrize(
    ("trouble", "chosen"),
    [(None, accelerator.KVM), ("it was silent\nfor 3 s", accelerator.EMULATION)],
)
def test_a_guest_is_asked_once(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: str | None,
    chosen: accelerator.Accelerator,
) -> None:
    monkeypatch.setattr(Guest, "trouble", trouble)
    for _ in range(2):
        because = accelerator.kvm_unusable_reason(KERNEL, AGENT)
        assert (
            because is None
            if trouble is None
            else "did not answer in 3 s: it was silent for 3 s" in str(because)
        )
    assert accelerator.choose(KERNEL, AGENT) == chosen
    assert Guest.asked == 1
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == [
        ".lock",
        "COMPLETE",
        "because",
    ]
    accelerator.kvm_unusable_reason(GuestKernel("6.1", Path("/dev/null"), Path("/modules")), AGENT)
    assert Guest.asked == 2, "of another kernel"
    monkeypatch.setattr(qemu, "version", lambda: "another")
    accelerator.kvm_unusable_reason(KERNEL, AGENT)
    assert Guest.asked == 3, "of another QEMU"
    monkeypatch.setattr(accelerator.os, "uname", lambda: SimpleNamespace(release="another"))
    accelerator.kvm_unusable_reason(KERNEL, AGENT)
    assert Guest.asked == 4, "on another kernel of the host's"


def test_a_guest_that_was_killed_says_nothing_about_kvm(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guest, "trouble", "killed")
    assert "killed by SIGKILL" in str(accelerator.kvm_unusable_reason(KERNEL, AGENT))
    assert [path.name for path in folder.iterdir()] == [".lock"]
    monkeypatch.setattr(Guest, "trouble", None)
    assert accelerator.kvm_unusable_reason(KERNEL, AGENT) is None


def test_no_holds_for_a_day_and_yes_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that was too busy once is not so for ever."""
    monkeypatch.setattr(Guest, "trouble", "it was silent")
    because = str(accelerator.kvm_unusable_reason(KERNEL, AGENT))
    [entry] = folder.glob("[!.]*")
    assert str(entry) in because, "what to delete is not said"
    aged(entry, hours=23)
    assert accelerator.kvm_unusable_reason(KERNEL, AGENT) == because
    assert Guest.asked == 1
    monkeypatch.setattr(Guest, "trouble", None)
    aged(entry, hours=25)
    assert accelerator.kvm_unusable_reason(KERNEL, AGENT) is None
    aged(entry, hours=1000)
    assert accelerator.kvm_unusable_reason(KERNEL, AGENT) is None
    assert Guest.asked == 2


def aged(entry: Path, hours: int) -> None:
    then = time.time() - hours * 3600
    os.utime(entry / "because", (then, then))


def test_what_a_killed_one_left_goes(folder: Path) -> None:
    left = folder / ".making-abc"
    left.mkdir(parents=True)
    (left / "initramfs").write_bytes(bytes(1000))
    accelerator.kvm_unusable_reason(KERNEL, AGENT)
    assert not left.exists()


def test_without_kvm_nobody_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator.os, "access", lambda *_: False)
    assert "/dev/kvm" in str(accelerator.kvm_unusable_reason(KERNEL, AGENT))
    assert Guest.asked == 0
