"""Owners of data: files that are removed, unlinked while open, or overwritten before any metadata
about them reaches the disk. The bytes of each path are known."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.analysis.ext.test_ext import MIB, record
from tests.variants import some

from fscost.analyze import explain
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

KIB = 1 << 10
PRELUDE = f"""
import mmap, os, subprocess
def put(name, kib, flags=0, times=1):
    file = os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)
    content = mmap.mmap(-1, kib * {KIB})
    content.write(os.urandom(len(content)))
    for _ in range(times):
        os.pwritev(file, [content], 0)
    return file
def sync():
    subprocess.run(["sync", "-f", "."], check=True)
def clone(source, target):
    subprocess.run(["cp", "--reflink=always", source, target], check=True)
def appended(name, size, times):
    file = os.open(name, os.O_WRONLY | os.O_CREAT)
    for _ in range(times):
        os.write(file, os.urandom(size))
        os.fdatasync(file)
def saved(name, kib):
    file = put(name, kib)
    os.fsync(file)
    os.close(file)
def replaced(name, times):
    for time in range(times):
        saved(f"t{{time}}", 120)
        os.rename(f"t{{time}}", name)
        if time == 0:
            synced()
def synced():
    subprocess.run(["sync", "-f", "."], check=True)
def nameless(kib):
    file = os.open("tmp", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.unlink("tmp")
    os.write(file, os.urandom(kib * {KIB}))
    os.fsync(file)
    os.close(file)
"""


@dataclass(frozen=True)
class Case:
    """`kib` is the expected file data by path, None for data without a path. `doubtful` is the part
    of it that is doubtful."""

    profiles: tuple[str, ...]
    script: str
    kib: dict[str | None, int]
    doubtful: int = 0
    disk_mib: int = 64


CASES = {
    "removed between two syncs": Case(
        ("ext2 -b 1024", "ext2", "ext4 -O ^has_journal", "ext4 -O ^has_journal,^extents,^64bit"),
        'os.close(put("a", 256)); sync(); os.unlink("a"); os.close(put("b", 100));'
        ' os.close(put("c", 100)); sync()',
        {"/a": 256, "/b": 100, "/c": 100},
    ),
    "nameless, after one that had its inode": Case(
        ("ext3", "ext4"),
        'os.close(put("old", 20)); sync(); os.unlink("old"); nameless(200); sync()',
        {"/old": 20, None: 200},
    ),
    "nameless, before one that has its inode": Case(
        ("xfs", "ext4"),
        'nameless(200); sync(); os.fsync(put("named", 20)); sync()',
        {"/named": 20, None: 200},
        disk_mib=512,
    ),
    "nameless, with the number and the blocks of a file that a rename replaced": Case(
        ("ext4 -O ^has_journal", "ext2"),
        'replaced("name", 3); nameless(120)',
        {"/t0": 120, "/t1": 120, "/t2": 120, None: 120},
    ),
    "nameless, with the number and the blocks of a removed file": Case(
        ("ext2 -b 1024", "ext4 -O ^has_journal,^extents,^64bit"),
        'saved("a", 1024); os.unlink("a"); nameless(342)',
        {"/a": 1024, None: 342},
    ),
    "created again under its name": Case(
        ("ext4 -O ^has_journal", "ext2"),
        'saved("a", 64); os.unlink("a"); saved("a", 64)',
        {"/a": 128},
    ),
    "appended to blocks that a node maps": Case(
        ("ext2 -b 4096",),
        'appended("a", 1024, 80)',
        {"/a": 320},
    ),
    "named only after the flush that has its data": Case(
        ("ext2", "ext4 -O ^has_journal"),
        'os.mkdir("d"); put("d/a", 64, os.O_DIRECT); os.fsync(put("z", 4)); '
        'os.rename("d/a", "d/b"); sync()',
        {None: 64, "/z": 4},
        doubtful=64,
    ),
    "named before the flush that has its data": Case(
        ("ext4 -O ^has_journal", "ext2"),
        'os.close(put("a", 64)); sync(); os.rename("a", "b"); sync()',
        {"/a": 64},
    ),
    "cloned before a commit has either": Case(
        ("xfs",),
        'os.close(put("a", 64)); clone("a", "b"); sync()',
        {"/a": 64},
        doubtful=64,
        disk_mib=512,
    ),
    "cloned after a commit": Case(
        ("xfs", "btrfs"),
        'os.close(put("a", 64)); sync(); clone("a", "b"); sync()',
        {"/a": 64},
        disk_mib=512,
    ),
    "written again before it is mapped": Case(
        ("xfs", "ext4"),
        'os.fsync(put("a", 256, os.O_DIRECT, times=2)); sync()',
        {"/a": 512},
        disk_mib=512,
    ),
    "written again elsewhere before it is mapped": Case(
        ("btrfs",),
        'os.fsync(put("a", 256, os.O_DIRECT, times=2)); sync()',
        {"/a": 256, None: 256},
        doubtful=256,
        disk_mib=256,
    ),
    "gone between a fast commit and a full one": Case(
        ("ext4 -O fast_commit",),
        'put("z", 4); sync(); a, b = put("a", 256), put("b", 256); os.fsync(a); os.fsync(b);'
        ' os.close(a); os.close(b); subprocess.run(["fallocate", "-p", "-o", "65536", "-l",'
        ' "65536", "a"], check=True); os.unlink("b"); sync()',
        {"/a": 256, "/b": 256, "/z": 4},
    ),
}


@pytest.mark.parametrize(
    ("name", "profile"),
    some(
        [(name, profile) for name, case in CASES.items() for profile in case.profiles],
        2,
        [(name, case.profiles[0]) for name, case in CASES.items()],
    ),
)
def test_data_is_its_own_files(name: str, profile: str, tmp_path: Path) -> None:
    case = CASES[name]
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "work.py").write_text(PRELUDE + case.script.replace("; ", "\n"))
    work = Workload(
        "mine", (Step("work", "python3 {input}/work.py"),), disk_bytes=MIB, input=tmp_path / "input"
    )
    # A host that stalls for 5 s, or for 30 s on btrfs, would otherwise bring a commit into the
    # sequence.
    commits = profile.startswith(("ext3", "ext4", "btrfs")) and "^has_journal" not in profile
    options = " -o commit=300" if commits else ""
    table = explain(record(profile + options, work, tmp_path / "cell", case.disk_mib)).table
    is_data = pc.and_(pc.equal(table["structure"], "file_data"), pc.equal(table["phase"], "work"))
    data = table.filter(is_data).combine_chunks()
    assert _sums(data) == {path: kib * KIB for path, kib in case.kib.items()}
    assert (pc.sum(data.filter(data["doubtful"])["length"]).as_py() or 0) == case.doubtful * KIB


def _sums(data: pa.Table) -> dict[str | None, int]:
    paths = data["path"].cast(pa.string())
    sums = (
        pa.table({"path": paths, "length": data["length"]})
        .group_by("path")
        .aggregate([("length", "sum")])
    )
    return dict(zip(sums["path"].to_pylist(), sums["length_sum"].to_pylist(), strict=True))
