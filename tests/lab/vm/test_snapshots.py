"""Snapshots of a cache of our own: a damaged one is made again, and said to be; nothing of one that failed stays."""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fscost import profile
from fscost.errors import HostError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.vm import VmLab, cache, kernels, snapshot
from fscost.lab.vm.snapshot import Snapshot
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

pytestmark = [pytest.mark.guest, pytest.mark.slow]

MIB = 1 << 20
AGAIN = "restored, from a snapshot made again: "


def use_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, but for the kernels that the user's own has; returns where its snapshots will be."""
    kernels.fetch()
    (home / "fscost").mkdir(parents=True)
    for name in ("kernels", "kvm"):
        if (cache.root() / name).exists():
            (home / "fscost" / name).symlink_to(cache.root() / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home / "fscost" / "snapshots"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Already with the one snapshot that is wanted."""
    assert started(run(VmLab(), tmp_path)) == "restored"
    used_last = max((cache.root() / "snapshots").glob("[!.]*"), key=lambda path: path.stat().st_mtime)
    snapshots = use_cache(tmp_path / "cache", monkeypatch)
    snapshots.mkdir()
    subprocess.run(["cp", "--archive", "--sparse=always", used_last, snapshots], check=True)
    return snapshots


def run(lab: VmLab, folder: Path) -> CellResult:
    number = len(list(folder.glob("cell*")))
    cell = Cell(profile.resolve("ext2"), Workload("mine", (Step("work", "echo hello > file"),), disk_bytes=MIB), repetition=0, seed=1, order=0)
    return lab.run(cell, LabOptions(folder / f"cell{number}", disk_size_bytes=64 * MIB), lambda _: None)


def started(result: CellResult) -> str:
    assert result.status == "done", result.because
    return str(result.facts["guest"]["started"])


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage in the state": lambda folder: garbage(folder / "state"),
    "half of the memory": lambda folder: cut(folder / "memory"),
    "gone": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_is_made_again(own: Path, tmp_path: Path, damage: str) -> None:
    said: list[str] = []
    lab = VmLab(say=said.append)
    assert started(run(lab, tmp_path)) == "restored"
    assert said == [], "it is the one that was copied"
    [folder] = own.glob("[!.]*")
    DAMAGES[damage](folder)
    assert started(run(lab, tmp_path)).startswith(AGAIN)
    assert len([line for line in said if "it is made again" in line]) == 1
    os.utime(folder, (0, 0))
    assert started(run(lab, tmp_path)) == "restored"
    assert folder.stat().st_mtime > time.time() - 600, "used last, evicted last"


def test_a_cell_changes_nothing_of_it(own: Path, tmp_path: Path) -> None:
    def digests() -> dict[str, str]:
        found = {}
        for file in own.glob("*/*"):
            with file.open("rb") as content:
                found[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
        return found

    before = digests()
    assert {"memory", "state", "vmlinux"} <= set(before)
    assert started(run(VmLab(), tmp_path)) == "restored"
    assert digests() == before


def test_where_restoring_never_works_it_is_made_again_once(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore, made = Snapshot.restore, []

    def fail(*_: object) -> None:
        raise HostError("not here")

    lab = VmLab()
    assert started(run(lab, tmp_path)) == "restored"
    monkeypatch.setattr(Snapshot, "restore", fail)
    monkeypatch.setattr(Snapshot, "boot", restore)  # as good, and quicker
    monkeypatch.setattr(Snapshot, "forget", lambda _: None)
    monkeypatch.setattr(snapshot, "take", lambda *_: made.append(1))
    assert [started(run(lab, tmp_path)) for _ in range(2)] == ["booted: not here"] * 2
    assert made == [1]


@pytest.mark.root
def test_no_room_for_a_snapshot(small_disk: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Enough for an initramfs, and for half a guest's memory.
    snapshots = use_cache(small_disk("150m"), monkeypatch)
    with pytest.raises(HostError, match="No space left on device") as raised:
        run(VmLab(), tmp_path)
    assert str(snapshots) in raised.value.what
    assert raised.value.remedy is not None
    assert "XDG_CACHE_HOME" in raised.value.remedy
    assert [path.name for path in snapshots.iterdir()] == [".lock"]
