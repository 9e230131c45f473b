"""btrfs: our table of real recordings agrees with btrfs's own tools on the same images, and with
what was written."""

import random
import re
import shutil
import struct
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.analysis.btrfs import tools
from tests.images import export_image
from tests.variants import some

from fscost import analyze, capture, profile
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.profile.model import DiskSpec, Profile
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

HERE = Path(__file__).parent
MIB = 1 << 20
PHASES = "make change move"
SAMPLES = 600
DATA_RELOC = (1 << 64) - 9  # BTRFS_DATA_RELOC_TREE_OBJECTID
PROFILES = [
    ("btrfs", 1, PHASES),
    ("btrfs -d dup -m dup -n 4096 -o compress=zstd", 1, PHASES),
    ("btrfs -d single -m single -n 65536 --csum blake2 -o max_inline=0", 1, PHASES),
    ("btrfs --csum sha256 -o nodatacow,notreelog", 1, PHASES),
    ("btrfs -R ^free-space-tree -m single -o space_cache=v1,compress-force=lzo", 1, PHASES),
    ("btrfs -R quota -O ^no-holes --csum xxhash -o compress=zlib,max_inline=4095", 1, PHASES),
    ("btrfs --mixed -n 4096", 1, PHASES),
    ("btrfs -d raid0 -m raid1", 2, PHASES),
    ("btrfs -d raid5 -m raid10", 4, PHASES),
    ("btrfs -d raid6 -m raid1c3", 4, PHASES),
    ("btrfs -d raid1 -m raid1", 3, "make leave"),
]


@dataclass(frozen=True)
class Row:
    event: int
    time_ns: int
    disk: int
    offset: int
    length: int
    structure: str
    cause: str
    tree: int
    inode: int
    path: str | None
    doubtful: bool
    transaction: int | None
    copy: int


def record(asked: Profile, work: Workload, folder: Path, disk_mib: int) -> Path:
    """Record one cell, which must succeed: no root test passes by skipping."""
    options = LabOptions(cell_dir=folder, disk_size_bytes=disk_mib * MIB)
    result = NativeLab(find_binaries()).run(Cell(asked, work, 0, 7, 0), options, lambda name: None)
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
    assert result.recording is not None
    return result.recording


def rows_of(recording: Path) -> list[Row]:
    disks = [disk["name"] for disk in capture._open(recording).info()["disks"]]
    columns = list(Row.__dataclass_fields__)
    table = analyze.explain(recording).table.select(columns).to_pydict()
    table["disk"] = [disks.index(name) for name in table["disk"]]
    return [Row(*values) for values in zip(*(table[name] for name in columns), strict=True)]


def last_writers(rows: list[Row], until_ns: int) -> dict[tuple[int, int], Row]:
    """Return the last writer of each sector, by disk and sector."""
    last = {}
    for row in rows:
        if row.time_ns <= until_ns:
            for sector in range(
                row.offset // tools.SECTOR, -(-(row.offset + row.length) // tools.SECTOR)
            ):
                last[row.disk, sector] = row
    return last


def check_blocks(image: tools.Image, last: dict[tuple[int, int], Row]) -> int:
    """Check the structure of tree blocks, and the transaction that wrote them."""
    count = 0
    striped = []
    for logical, block in image.blocks.items():
        places = image.places(logical)
        if places is None:
            striped.append(logical)
            continue
        for disk, offset, copy in places:
            row = last[disk, offset // tools.SECTOR]
            what = f"block {logical} {block}, copy {copy}: {row}"
            assert (row.structure, row.transaction, row.copy) == (
                block.structure,
                block.generation,
                copy,
            ), what
            assert row.tree == block.tree or block.tree == tools.TREES["TREE_LOG"][0], what
            count += 1
    return count + check_striped(image, last, set(striped))


def check_striped(image: tools.Image, last: dict[tuple[int, int], Row], striped: set[int]) -> int:
    """Check tree blocks in chunks whose places the tool does not state directly, by the address in
    their headers."""
    count = 0
    opened = ExitStack()
    files = [opened.enter_context(disk.open("rb")) for disk in image.disks]
    for (disk, sector), row in last.items():
        if not striped:
            break
        files[disk].seek(sector * tools.SECTOR + 32)
        fsid, logical, generation = struct.unpack_from("<16sQ24xQ", files[disk].read(56))
        block = image.blocks.get(logical)
        if (
            logical in striped
            and fsid == image.fsid
            and block
            and generation == block.generation
            and row.structure != "parity"
        ):
            assert (row.structure, row.transaction) == (block.structure, block.generation), (
                f"{logical} {block}: {row}"
            )
            count += 1
    opened.close()
    return count


def check_data(
    image: tools.Image,
    last: dict[tuple[int, int], Row],
    rng: random.Random,
    before: list[tools.Image],
) -> int:
    """Check data: its inode is the current owner, one of several that share it, or an earlier
    owner; its name is a name of that inode."""
    count = 0
    sectors = [
        start + at
        for start, (length, _) in image.extents.items()
        for at in range(0, length, tools.SECTOR)
    ]
    for logical in rng.sample(sectors, min(len(sectors), SAMPLES)):
        start = max(at for at in image.extents if at <= logical)
        owners = image.extents[start][1]
        places = image.places(logical)
        for disk, offset, _ in places or []:  # striped data is checked by its tags
            row = last.get((disk, offset // tools.SECTOR))
            if row is None or row.structure == "unused":
                continue  # reserved and not written
            what = f"{logical} of {owners}: {row}"
            assert row.structure == (
                "free_space_cache" if (1, row.inode) in owners else "file_data"
            ), what
            if {tree for tree, _ in owners} == {DATA_RELOC}:
                continue  # allocated as a target for balance, and not written since
            if owners and (row.tree, row.inode) not in owners:
                sharing = [
                    some for old in before for _, some in old.extents.values() if owners & some
                ]
                tag = tag_at(image, disk, offset)
                assert any((row.tree, row.inode) in some for some in sharing) or (
                    tag and row.path in names_of(tag)
                ), what
            elif owners and row.structure == "file_data":
                names = {
                    name for some in [*before, image] for _, name in some.names[row.tree, row.inode]
                }
                # A name that had not reached the disk is unknown. A path is never another file's
                # name.
                assert row.path is None or row.path.rsplit("/", 1)[-1] in names, f"{what}: {names}"
            count += 1
    return count


def tag_at(image: tools.Image, disk: int, offset: int) -> str | None:
    with image.disks[disk].open("rb") as file:
        file.seek(offset)
        tag = re.match(rb"TAG (\S+) (\d+) ", file.read(512))
    return f"/{tag[1].decode()}" if tag else None


# Other names of data that was written under a name.
RENAMED = [
    ("/d2/", ("/renamed/",)),
    ("/sub/", ("/snap/", "/received/sent/", "/sent/")),
    ("/d3/f1", ("/d3/third-name", "/d4/second-name")),
    ("/big", ("/clone",)),
]


def names_of(path: str) -> set[str]:
    return {path} | {
        other + path[len(begin) :]
        for begin, others in RENAMED
        if path.startswith(begin)
        for other in others
    }


def check_tags(image: tools.Image, last: dict[tuple[int, int], Row]) -> int:
    """Check that each tagged sector is attributed to the file that its tag names, whether or not
    that file still exists."""
    count = 0
    opened = ExitStack()
    files = [opened.enter_context(disk.open("rb")) for disk in image.disks]
    for (disk, sector), row in last.items():
        if row.structure != "file_data":
            continue
        files[disk].seek(sector * tools.SECTOR)
        tag = re.match(rb"TAG (\S+) (\d+) ", files[disk].read(512))
        if not tag:
            continue
        path = f"/{tag[1].decode()}"
        assert row.path in names_of(path), f"{path}: {row}"
        count += 1
    opened.close()
    return count


def with_disks(spelled: str, disks: int) -> Profile:
    return replace(
        profile.resolve(spelled),
        disks=(DiskSpec(), *(DiskSpec(f"disk{number}") for number in range(1, disks))),
    )


def images_of(recording: Path, folder: Path, disks: int, at_ns: int) -> tools.Image:
    paths = [folder / f"disk{number}.img" for number in range(disks)]
    for number, path in enumerate(paths):
        path.unlink(missing_ok=True)
        export_image(capture._open(recording), number, path, at_ns=at_ns)
    return tools.read(paths, at_ns)


def check_recovery(image: tools.Image, recording: Path) -> None:
    """Check the newest superblock, and the items that fsync logged since it."""
    [found] = capture.recovery(recording, image.at_ns)
    assert (found["generation"], found["is_sound"]) == (image.generation, True)
    assert {(each["tree"], each["inode"]) for each in found["logged"]} == image.logged
    assert found["logged_count"] == len(image.logged)
    for each in found["logged"]:
        names = {
            name
            for tree in (each["tree"], tools.TREES["TREE_LOG"][0])
            for _, name in image.names[tree, each["inode"]]
        }
        assert each["inode"] == 256 or (each["path"] or "").rsplit("/", 1)[-1] in names, (
            f"{each}: {names}"
        )


@dataclass
class Checked:
    blocks: int = 0
    data: int = 0
    tags: int = 0


def check(recording: Path, folder: Path, disks: int, rng: random.Random) -> Checked:
    """Check the recording at the end of each phase, and at some instants between."""
    rows = rows_of(recording)
    assert not [row for row in rows if "unknown" in (row.structure, row.cause)]
    marks = {name: at for at, name, _ in capture._open(recording).marks()}
    begin, end = marks["make"], marks["end"]
    phases = [at for at in marks.values() if begin < at <= end]
    checked = Checked()
    before: list[tools.Image] = []
    superblock = rng.choice(
        [row.time_ns for row in rows if row.structure == "superblock" and begin < row.time_ns < end]
    )
    for at_ns in sorted([*phases, superblock, *(rng.randrange(begin, end) for _ in range(2))]):
        image = images_of(recording, folder, disks, at_ns)
        check_recovery(image, recording)
        last = last_writers(rows, at_ns)
        checked.blocks += check_blocks(image, last)
        checked.data += check_data(image, last, rng, before)
        checked.tags += check_tags(image, last)
        before.append(image)
    return checked


@pytest.mark.parametrize(("spelled", "disks", "phases"), some(PROFILES, 1, always=PROFILES[:1]))
def test_every_block_is_what_btrfs_says(
    spelled: str, disks: int, phases: str, tmp_path: Path, seed: int
) -> None:
    shutil.copytree(
        HERE, tmp_path / "input", ignore=shutil.ignore_patterns("test_*", "__pycache__")
    )
    steps = tuple(
        Step(phase, f"python3 {{input}}/steps.py {phase}", settle="remount")
        for phase in phases.split()
    )
    recording = record(
        with_disks(spelled, disks),
        Workload("mine", steps, disk_bytes=MIB, input=tmp_path / "input"),
        tmp_path / "cell",
        512,
    )
    checked = check(recording, tmp_path, disks, random.Random(seed))
    assert checked.blocks > 50
    assert checked.data > 500 or "raid" in spelled
    assert checked.tags > 1000
