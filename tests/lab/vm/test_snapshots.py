"""Snapshots in a cache made for the tests: a damaged snapshot is remade with a message, and a
failed one leaves nothing behind."""

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.variants import some

from fscost import profile
from fscost.errors import HostError
from fscost.files import cache
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.vm import VmLab, kernels, snapshot
from fscost.lab.vm.snapshot import Snapshot
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

pytestmark = [pytest.mark.guest, pytest.mark.slow]

MIB = 1 << 20
AGAIN = "restored from a rebuilt snapshot: "


def use_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache with the kernels of the user's cache; return the folder of its
    snapshots."""
    kernels.fetch()
    (home / "fscost").mkdir(parents=True)
    for name in ("kernels", "kvm"):
        if (cache.root() / name).exists():
            (home / "fscost" / name).symlink_to(cache.root() / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home / "fscost" / "snapshots"


def copy(made: Path, snapshots: Path) -> None:
    subprocess.run(["cp", "--archive", "--sparse=always", made, snapshots], check=True)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the complete snapshot that `run` restores.

    It is not the most recently used one of the user's cache, because another test may have used
    another since.
    """
    take, taken = snapshot.take, list[Snapshot]()

    def remembered(*words: Any) -> Snapshot:
        taken.append(take(*words))
        return taken[-1]

    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(snapshot, "take", remembered)
        assert started(run(VmLab(), folder)) == "restored"
    copy(taken[-1].folder, folder)
    return folder / taken[-1].folder.name


@pytest.fixture
def own(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache that already has the one snapshot needed."""
    snapshots = use_cache(tmp_path / "cache", monkeypatch)
    snapshots.mkdir()
    copy(whole, snapshots)
    return snapshots


@pytest.fixture
def no_boot(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy `whole` instead of remaking a snapshot: booting takes most of a test's time, and another
    test here boots."""

    def save(made: Path, *_: object) -> str:
        shutil.copyfile(whole / snapshot._STATE, made / snapshot._STATE)
        return (whole / snapshot._VERSION).read_text()

    monkeypatch.setattr(snapshot, "save", save)


def run(lab: VmLab, folder: Path) -> CellResult:
    number = len(list(folder.glob("cell*")))
    cell = Cell(
        profile.resolve("ext2"),
        Workload("mine", (Step("work", "echo hello > file"),), disk_bytes=MIB),
        repetition=0,
        seed=1,
        order=0,
    )
    return lab.run(
        cell, LabOptions(folder / f"cell{number}", disk_size_bytes=64 * MIB), lambda _: None
    )


def started(result: CellResult) -> str:
    assert result.status == "done", result.because
    return str(result.facts["guest"]["started"])


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    with file.open("r+b") as content:
        content.seek(file.stat().st_size // 3)
        byte = content.read(1)
        content.seek(-1, os.SEEK_CUR)
        content.write(bytes([byte[0] ^ 1]))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda folder: garbage(folder / "state"),
    "half": lambda folder: cut(folder / "state"),
    "one bit of the guest's memory": lambda folder: flip(folder / "state"),
    "another kernel": lambda folder: flip(folder / "vmlinux"),
    "half deleted": lambda folder: (folder / "state").unlink(),
}


@pytest.mark.parametrize("damage", some(DAMAGES, 1))
def test_a_damaged_snapshot_is_made_again(own: Path, tmp_path: Path, damage: str) -> None:
    said: list[str] = []
    [folder] = own.glob("[!.]*")
    DAMAGES[damage](folder)
    lab = VmLab(say=said.append)
    assert started(run(lab, tmp_path)) == "restored"
    assert len([line for line in said if "; rebuilding it" in line]) == 1, said
    assert started(run(VmLab(say=said.append), tmp_path)) == "restored"
    assert len(said) == 2, "damaged, rebuilt"


def test_a_snapshot_is_used_on_though_it_is_deleted(own: Path, tmp_path: Path) -> None:
    said: list[str] = []
    lab = VmLab(say=said.append)
    assert started(run(lab, tmp_path)) == "restored"
    [folder] = own.glob("[!.]*")
    shutil.rmtree(folder)
    assert started(run(lab, tmp_path)) == "restored"
    assert said == []


@pytest.mark.usefixtures("no_boot")
def test_a_snapshot_that_changes_while_it_is_used_is_made_again(own: Path, tmp_path: Path) -> None:
    lab = VmLab()
    assert started(run(lab, tmp_path)) == "restored"
    [folder] = own.glob("[!.]*")
    flip(folder / "state")
    os.utime(folder / "state")
    assert started(run(lab, tmp_path)).startswith(AGAIN)


@pytest.mark.usefixtures("no_boot")
def test_a_guest_that_fails_before_its_first_interval_renews_the_snapshot_once(
    own: Path, tmp_path: Path
) -> None:
    """The digest is right, but the guest in the snapshot was already broken when it was saved."""
    [folder] = own.glob("[!.]*")
    flip_text(folder / "state")
    digests = cache.digests(folder)
    with (folder / "state").open("rb") as state:
        digests["state"] = hashlib.file_digest(state, "sha256").hexdigest()
    (folder / cache.COMPLETE).write_text(json.dumps(digests))
    said: list[str] = []
    result = run(VmLab(say=said.append), tmp_path)
    assert started(result) == "restored"
    assert len([line for line in said if "could not continue" in line]) == 1, said


def flip_text(state: Path) -> None:
    """Replace the text of the guest's kernel, which every process executes, by a triple fault.

    In the stream, a page of memory follows the eight bytes of its address. The low bits of the
    address say that the page is whole, and whether it belongs to the same memory as the previous
    one or that memory's name comes first (QEMU, migration/ram.c: RAM_SAVE_FLAG_PAGE and _CONTINUE).
    Between two pages, pages of zeros and the start of another section may stand, because QEMU ends
    a section after 50 ms. The kernel cannot be found by its image, because it patches nearly every
    page at boot.
    """
    page_bytes, whole_page = 4096, 0x08 | 0x20
    text = 0x1000000  # physical, of x86-64 (CONFIG_PHYSICAL_START), and loaded there by QEMU
    # nop …; xor eax, eax; mov cr3, rax: no page is mapped any more, not even those of the fault
    # handlers.
    fault = bytes.fromhex("31c0 0f22d8")
    damaged = bytearray(state.read_bytes())
    at = damaged.find(struct.pack(">Q", text | whole_page))
    found = 0
    for address in range(text, text + 4096 * page_bytes, page_bytes):
        start = re.escape(struct.pack(">Q", address)[:-1]) + rb"(\x28|\x08.[ -~]+)"
        if header := re.compile(start, re.DOTALL).search(damaged, at, at + 512):
            at = header.end() + page_bytes
            damaged[header.end() : at] = fault.rjust(page_bytes, b"\x90")
            found += 1
    assert found > 1000
    state.write_bytes(damaged)


def test_a_cell_changes_nothing_of_it(own: Path, tmp_path: Path) -> None:
    def digests() -> dict[str, str]:
        found = {}
        for file in own.glob("*/*"):
            with file.open("rb") as content:
                found[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
        return found

    before = digests()
    assert {"initramfs", "state", "vmlinux"} <= set(before)
    assert started(run(VmLab(), tmp_path)) == "restored"
    assert digests() == before


def test_where_restoring_never_works_it_is_made_again_once(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore, made = Snapshot.restore, []

    def fail(*_: object) -> None:
        raise HostError("not here")

    lab = VmLab()
    assert started(run(lab, tmp_path)) == "restored"
    monkeypatch.setattr(Snapshot, "restore", fail)
    monkeypatch.setattr(Snapshot, "boot", restore)  # equivalent, and quicker
    take = snapshot.take
    monkeypatch.setattr(cache, "discard", lambda _: None)
    monkeypatch.setattr(snapshot, "take", lambda *words: made.append(1) or take(*words))
    assert [started(run(lab, tmp_path)) for _ in range(2)] == ["booted: not here"] * 2
    assert made == [1]


@pytest.mark.root
@pytest.mark.long
def test_no_room_for_a_snapshot(
    small_disk: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Enough space for an initramfs and half a guest's memory.
    snapshots = use_cache(small_disk("150m"), monkeypatch)
    with pytest.raises(HostError, match="No space left on device") as raised:
        run(VmLab(), tmp_path)
    assert str(snapshots) in raised.value.what
    assert raised.value.remedy is not None
    assert "XDG_CACHE_HOME" in raised.value.remedy
    assert [path.name for path in snapshots.iterdir()] == [".lock"]
