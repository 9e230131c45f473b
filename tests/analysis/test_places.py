"""Offsets in files, compared with the kernel's own map of each file (FIEMAP, as filefrag prints
it)."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.analysis.btrfs import tools
from tests.analysis.ext.test_ext import MIB, record
from tests.images import export_image
from tests.variants import some

from fscost import capture
from fscost.analyze import explain
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

WORK = """
import os, random, subprocess
rng = random.Random(7)
files = {name: os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in "abc"}
big = os.open("big", os.O_RDWR | os.O_CREAT, 0o644)
# Names that were not on the disk before the data are doubtful without a journal.
subprocess.run(["sync", "-f", "."], check=True)
for _ in range(60):
    # In turn, so that each file has many extents; with holes.
    name = rng.choice("abc")
    os.pwrite(files[name], os.urandom(rng.choice((4096, 40960))), 4096 * rng.randrange(2000))
    if rng.random() < 0.5:
        os.fsync(files[name])
os.write(big, os.urandom(6 << 20))
for file in (*files.values(), big):
    os.fsync(file)
"""
AGAIN = """
import os, subprocess
# Where a range can be collapsed, blocks move within the file, and are then written in place.
subprocess.run(["fallocate", "-c", "-o", "1048576", "-l", "2097152", "big"])
big = os.open("big", os.O_RDWR)
os.fsync(big)
os.write(big, os.urandom(os.fstat(big).st_size))
os.fsync(big)
"""
EXTENT = re.compile(r"^ *\d+: +(\d+)\.\. *(\d+): +(\d+)\.\. *\d+:(?!.*unwritten)", re.MULTILINE)
"""An extent with data."""
PROFILES = ("ext4", "ext4 -b 1024", "ext3", "ext2 -b 1024", "xfs", "xfs -b size=1024", "btrfs")


@dataclass(frozen=True)
class Extent:
    """One extent of a file, in bytes."""

    start: int
    length: int
    place: int


def extents(text: str) -> list[Extent]:
    found = [tuple(map(int, numbers)) for numbers in EXTENT.findall(text)]
    return [Extent(first, last + 1 - first, place) for first, last, place in found]


@pytest.mark.parametrize("spelled", some(list(PROFILES), 3, ["ext4", "xfs", "btrfs"]))
def test_offsets_in_files_are_those_of_the_kernels_map(spelled: str, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    for name, script in (("work", WORK), ("again", AGAIN)):
        (tmp_path / "input" / f"{name}.py").write_text(script)
    steps = (
        Step("work", "python3 {input}/work.py"),
        Step("again", "python3 {input}/again.py"),
        Step("maps", "filefrag -v -b1 a b c big"),
    )
    work = Workload("mine", steps, disk_bytes=MIB, input=tmp_path / "input")
    recording = record(spelled, work, tmp_path / "cell", 320)
    chunks = None
    if spelled.startswith("btrfs"):
        # Its map has logical addresses.
        image = tmp_path / "image"
        export_image(capture._open(recording), 0, image)
        chunks = tools.read([image], 0)
    rows = explain(recording).table.to_pylist()
    written: dict[tuple[str, int], int] = {}
    for row in rows:
        if row["structure"] == "file_data" and row["path"] and row["phase"] in ("work", "again"):
            assert row["file_offset"] is not None
            for at in range(0, row["length"], 512):
                written[row["path"], row["file_offset"] + at] = row["offset"] + at
    compared = 0
    said = next((tmp_path / "cell").rglob("output.log")).read_text()
    files = re.findall(r"^File size of (\S+) is(.*?) found$", said, re.MULTILINE | re.DOTALL)
    for name, shown in files:
        for extent in extents(shown):
            place = extent.place
            if chunks is not None:
                [(_, place, _)] = chunks.places(extent.place) or []
            for at in range(0, extent.length, 512):
                assert written.get((f"/{name}", extent.start + at)) == place + at
                compared += 1
    assert compared * 512 > 4 * MIB
