"""Files that guests read stay in the page cache."""

import ctypes
import mmap
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fscost.host import tool
from fscost.lab.vm import resident
from fscost.matrix import Cell
from fscost.profile import resolve
from fscost.workload import resolve as workload

LIBC = ctypes.CDLL(None, use_errno=True)
SIZE = 1 << 20


def resident_pages(file: Path) -> int:
    """Return the number of resident pages, from mincore(2)."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        seen = (ctypes.c_ubyte * (len(mapped) // mmap.PAGESIZE))()
        buffer = (ctypes.c_char * len(mapped)).from_buffer(mapped)
        assert LIBC.mincore(buffer, ctypes.c_size_t(len(mapped)), seen) == 0
        del buffer
        return sum(page & 1 for page in seen)


def dropped(file: Path) -> None:
    """Drop one file from the page cache, as /proc/sys/vm/drop_caches does for all files."""
    descriptor = os.open(file, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.fixture
def file() -> Iterator[Path]:
    """Yield a file on a disk, because a tmpfs keeps all pages."""
    made = Path(__file__).with_name(f".resident-{os.getpid()}")
    with made.open("wb") as opened:
        opened.write(os.urandom(SIZE))
        os.fsync(opened.fileno())
    yield made
    made.unlink()


def test_a_held_file_stays_in_the_page_cache(file: Path) -> None:
    dropped(file)
    if resident_pages(file) > 0:
        pytest.skip("the file system of this checkout does not drop pages")
    with resident.held([file.with_name("no such file"), file.parent, file, file]) as count:
        assert count == 1
        dropped(file)
        assert resident_pages(file) == SIZE // mmap.PAGESIZE
    dropped(file)
    assert resident_pages(file) == 0


def test_few_files_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "MOST_FILES", 3)
    monkeypatch.setattr(resident, "MOST_BYTES", 2000)
    sizes = {"a": 900, "b": 0, "c": 1101, "d": 1000, "e": 50, "f": 50}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(bytes(size))
    found = [tmp_path / name for name in sizes]
    with resident.held(found) as count:  # a, d and e
        assert count == 3
    with resident.held(found[:3]) as count:  # a: b is empty, c is too large beside it
        assert count == 1


def test_a_guest_reads_the_programs_of_its_plan_and_its_input(tmp_path: Path) -> None:
    (tmp_path / "tree.tar").write_bytes(b"x")
    small = replace(workload("small-files"), input=tmp_path)
    cell = Cell(resolve("xfs"), small, 0, 7, 0)
    built = {
        "mkfs": [["mkfs.xfs", "{disk.main}"]],
        "after_mount": [["ls", "{dir}"]],
        "background": [],
        "inspect": [{"name": "superblock", "command": ["xfs_db", "-r", "{disk.main}"]}],
    }
    found = resident.read_by(cell, built)
    names = ("sh", "tar", "rm", "mkfs.xfs", "ls", "xfs_db")
    programs = [path.resolve() for path in map(tool, names) if path is not None]
    assert len(programs) == len(names)
    assert set(programs) < set(found)
    assert found[-1] == tmp_path / "tree.tar"


def test_programs_come_with_their_libraries() -> None:
    names = [path.name for path in resident.programs(("tar", "no-such-program"))]
    assert names[0] == "tar"
    assert any(name.startswith("libc") for name in names)
    assert any(name.startswith("ld-linux") for name in names)
