"""The cache holds complete entries or none, and reports the reason."""

import errno
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.lab.vm.test_guest_kernel import module

from fscost.errors import HostError
from fscost.files import cache
from fscost.files.cache import DamagedError
from fscost.lab.vm import qemu, snapshot
from fscost.lab.vm.confinement import Confinement
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.qemu import EMULATION, KVM, Accelerator


def fill(folder: Path) -> None:
    with (folder / "much").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass


def fill_by_a_program(folder: Path) -> None:
    """Fail like a program that gives no reason for its failure."""
    try:
        fill(folder)
    except OSError:
        raise HostError("it ended") from None


@pytest.mark.root
@pytest.mark.parametrize("make", [fill, fill_by_a_program])
def test_a_full_disk_is_told_and_nothing_is_left(
    small_disk: Callable[[str], Path], make: object
) -> None:
    full = small_disk("4m")
    with pytest.raises(HostError, match="No space left on device") as raised:
        cache.complete(full / "snapshots" / "one", make)  # type: ignore[arg-type]
    assert str(full) in raised.value.what
    assert [path.name for path in full.rglob("*")] == ["snapshots", ".lock"]


def test_who_has_no_home_is_asked_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(
        "HOME", "/proc/nowhere"
    )  # as for a service's user: there is no folder, and none can be made
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


def test_a_snapshot_is_of_all_that_goes_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(
        place: str,
        accelerator: Accelerator = EMULATION,
        kernel: str = "kernel",
        agent: str = "agent",
        **modules: str,
    ) -> Path:
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        (folder / "vmlinux").write_text(kernel)
        (folder / "agent").write_text(agent)
        for name, says in ({"ext4": "6.12"} | modules).items():
            (folder / f"{name}.ko").write_bytes(module(version=says))
        found = GuestKernel("6.12", folder / "vmlinux", folder)
        return snapshot.take(
            found,
            Confinement(folder / "agent"),
            accelerator,
            lambda _: None,
            qemu.Running(),
        ).folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        snapshot, "save", lambda made, *_: (made / "state").write_text("state") and "6.12"
    )
    known = taken("a")
    assert taken("b") == known, "wherever it lies"
    others = [
        taken("a", KVM),
        taken("a", kernel="another"),
        taken("a", agent="another"),
        taken("a", ext4="built again"),
        taken("a", xfs="6.12"),
    ]
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
    cache.discard_all_but(tmp_path, 7)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".making-x", *names[-7:]]
    cache.discard_all_but(tmp_path, 20)
    assert len(list(tmp_path.iterdir())) == 8


def entry(folder: Path) -> Path:
    """Make an entry with two files."""

    def make(made: Path) -> None:
        (made / "modules").mkdir()
        (made / "modules" / "one").write_text("a module")
        (made / "state").write_text("a state")

    return cache.complete(folder, make)


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["state", "modules/one"])
@pytest.mark.parametrize("damage", [flip, lambda file: os.truncate(file, 1), Path.unlink])
def test_a_damaged_entry_is_noticed(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    folder = entry(tmp_path / "one")
    cache.check(folder)
    damage(folder / name)
    with pytest.raises(DamagedError):
        cache.check(folder)


def test_a_file_in_use_is_checked_again_when_it_changes(tmp_path: Path) -> None:
    folder = entry(tmp_path / "one")
    file = state(folder)
    assert file.read() == b"a state"
    flip(folder / "state")
    with pytest.raises(DamagedError, match="state differs"):
        file.read()


def test_deleting_an_entry_takes_nothing_from_who_uses_it(tmp_path: Path) -> None:
    folder = entry(tmp_path / "one")
    file = state(folder)
    cache.discard(file)
    assert [path.name for path in tmp_path.iterdir()] == [cache.LOCK]
    assert file.read() == b"a state"


def state(folder: Path) -> cache.CheckedFile:
    return cache.CheckedFile(folder / "state", cache.digests(folder)["state"])


def test_an_entry_that_was_made_again_is_not_discarded(tmp_path: Path) -> None:
    """Two runs fail with the same snapshot; the second must not delete the snapshot that the first
    remade."""
    folder = entry(tmp_path / "one")
    seen = state(folder)
    cache.discard(state(folder))
    entry(folder)
    cache.discard(seen)
    cache.check(folder)


def test_an_entry_that_vanishes_while_it_is_opened_is_made_once(tmp_path: Path) -> None:
    folder, opened, damages = entry(tmp_path / "one"), [], []

    def use(found: Path) -> cache.CheckedFile:
        opened.append(found)
        if len(opened) == 1:  # another run discards the entry now, and makes it again
            cache.discard(state(found))
            with pytest.raises(DamagedError):
                state(found)
            entry(found)
            raise DamagedError("state: No such file or directory")
        return state(found)

    def make(_: Path) -> None:
        raise AssertionError("the other run's entry is whole")

    assert cache.opened(folder, make, use, damages.append).is_in_place()
    assert (len(opened), damages) == (2, [])


def test_a_damaged_entry_is_made_again(tmp_path: Path) -> None:
    folder, damages = entry(tmp_path / "one"), []
    flip(folder / "state")
    made = cache.opened(
        folder, lambda made: (made / "state").write_text("new") and None, state, damages.append
    )
    assert made.read() == b"new"
    assert [error.what for error in damages] == ["state differs from its digest"]


def test_half_of_an_entry_does_not_count(tmp_path: Path) -> None:
    """The entry was deleted in part, or another process wrote to it after the deletion (findings,
    G1)."""
    folder = entry(tmp_path / "one")
    (folder / cache.COMPLETE).unlink()
    assert not cache.is_complete(folder)
    entry(folder)
    cache.check(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == [cache.LOCK, "one"]


def test_the_lock_is_neither_followed_nor_emptied(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("ours")
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / cache.LOCK).symlink_to(victim)
    with pytest.raises(HostError, match="Too many levels of symbolic links"):
        entry(tmp_path / "cache" / "one")
    assert victim.read_text() == "ours"


@pytest.mark.root
def test_a_cache_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = entry(tmp_path / "cache" / "one")
    for changed in (folder, folder.parent):
        os.chown(changed, 65534, 65534)
        with pytest.raises(HostError, match="belongs to user nobody"):
            entry(folder)
        os.chown(changed, 0, 0)
    entry(folder)


@pytest.mark.root
def test_nothing_is_left_in_the_home_of_somebody_else(tmp_path: Path) -> None:
    """As after `sudo` that keeps HOME."""
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(HostError, match="belongs to user nobody"):
        entry(tmp_path / ".cache" / "fscost" / "snapshots" / "one")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = entry(tmp_path / "cache" / "one")
    folder.chmod(mode)
    with pytest.raises(HostError, match="can be written by other users") as raised:
        entry(folder)
    assert "chmod go-w" in str(raised.value.remedy)
    folder.chmod(0o700)
    folder.parent.chmod(0o777)
    with pytest.raises(HostError, match="can be written by other users"):
        entry(folder)


def test_a_cache_that_cannot_be_written_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = entry(tmp_path / "one")

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(cache, "_alone", refuse)
    assert entry(folder) == folder
    cache.discard(state(folder))
    cache.check(folder)
    with pytest.raises(HostError, match="Read-only file system") as raised:
        entry(tmp_path / "two")
    assert "XDG_CACHE_HOME" in str(raised.value.remedy)


def test_a_relative_cache_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert cache.root() == tmp_path / ".cache" / "fscost"


def test_an_entry_is_durable_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[list[str], bool]] = []
    flush = cache._flush

    def note(folder: Path) -> None:
        flushed.append(
            (sorted(path.name for path in folder.iterdir()), (tmp_path / "one").exists())
        )
        flush(folder)

    monkeypatch.setattr(cache, "_flush", note)
    entry(tmp_path / "one")
    files = ["modules", "state"]
    assert flushed == [
        (files, False),
        (sorted([cache.COMPLETE, *files]), False),
        ([cache.LOCK, "one"], True),
    ]
