"""The cache holds what is complete, or nothing; and says why."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.lab.vm.test_guest_kernel import module

from fscost.errors import HostError
from fscost.lab.vm import cache, qemu, snapshot
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.qemu import EMULATION, KVM, Accelerator


def fill(folder: Path) -> None:
    with (folder / "much").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass


def fill_by_a_program(folder: Path) -> None:
    """One that does not say why it failed."""
    try:
        fill(folder)
    except OSError:
        raise HostError("it ended") from None


@pytest.mark.root
@pytest.mark.parametrize("make", [fill, fill_by_a_program])
def test_a_full_disk_is_told_and_nothing_is_left(small_disk: Callable[[str], Path], make: object) -> None:
    full = small_disk("4m")
    with pytest.raises(HostError, match="No space left on device") as raised:
        cache.complete(full / "snapshots" / "one", make)  # type: ignore[arg-type]
    assert str(full) in raised.value.what
    assert [path.name for path in full.rglob("*")] == ["snapshots", ".lock"]


def test_who_has_no_home_is_asked_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc/nowhere")  # as a user's of a service: there is none, and none can be made
    with pytest.raises(HostError, match=r"/proc/nowhere/.*: No such file or directory") as raised:
        cache.complete(cache.root() / "kernels" / "6.12", fill)
    assert raised.value.remedy == "name another folder: XDG_CACHE_HOME=…"

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(HostError, match="no home"):
        cache.root()


def test_another_failure_is_told_as_it_is(tmp_path: Path) -> None:
    def make(_: Path) -> None:
        raise HostError("the guest did not start")

    with pytest.raises(HostError, match="the guest did not start"):
        cache.complete(tmp_path / "one", make)


def test_what_several_want_at_once_is_made_once(tmp_path: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        time.sleep(0.2)

    wanted = tmp_path / "kernels" / "one"
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: cache.complete(wanted, make), range(3))) == [wanted] * 3
    assert len(made) == 1


def test_a_snapshot_is_of_all_that_goes_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(place: str, accelerator: Accelerator = EMULATION, kernel: str = "kernel", agent: str = "agent", **modules: str) -> Path:
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        (folder / "vmlinux").write_text(kernel)
        (folder / "agent").write_text(agent)
        for name, says in ({"ext4": "6.12"} | modules).items():
            (folder / f"{name}.ko").write_bytes(module(version=says))
        found = GuestKernel("6.12", folder / "vmlinux", folder)
        return snapshot.take(found, folder / "agent", accelerator, lambda _: None, lambda _: nullcontext()).folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(snapshot.Snapshot, "save", lambda *_: "6.12")
    known = taken("a")
    assert taken("b") == known, "wherever it lies"
    others = [taken("a", KVM), taken("a", kernel="another"), taken("a", agent="another"), taken("a", ext4="built again"), taken("a", xfs="6.12")]
    monkeypatch.setattr(qemu, "version", lambda: "1.0")
    others.append(taken("b"))
    monkeypatch.setattr(qemu, "MEMORY_BYTES", 1 << 20)
    others.append(taken("b"))
    assert len({known, *others}) == 8


def test_those_used_last_stay(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(12)]
    for age, name in enumerate(reversed(names)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / ".making-x").mkdir()
    snapshot._forget_others(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".making-x", *names[-7:]]
