"""ext2, ext3, ext4: our table of real recordings agrees with e2fsprogs on the same images, and with
what was written."""

import random
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.images import export_image
from tests.variants import some

from fscost import analyze, capture, profile, workload
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

MIB = 1 << 20
PHASES = ("make", "change", "replace")
OWNED = {"file_data", "directory", "directory_index", "extent_map", "xattr", "symlink"}
STRUCTURES = {
    "Primary superblock": "superblock",
    "Backup superblock": "superblock_backup",
    "Group descriptors": "group_descriptors",
    "Group descriptor": "group_descriptors",
    "Reserved GDT blocks": "group_descriptors",
    "Block bitmap": "block_bitmap",
    "Inode bitmap": "inode_bitmap",
    "Inode table": "inode_table",
}
HOLDS_VALUE = 0x200000
"""EXT4_EA_INODE_FL: the inode holds the value of an attribute. e2fsprogs calls its blocks file
data. The inode's only name is its owner's."""
HARD_LINKS = {"/d3/f1": "/d4/second-name"}
PROFILES = [
    "ext4",
    "ext4 -b 1024 -O ^flex_bg",
    "ext4 -O ^has_journal",
    "ext4 -O ^metadata_csum,^64bit -I 128",
    "ext4 -O bigalloc,meta_bg,^resize_inode,inline_data -C 16384",
    "ext4 -O sparse_super2 -o data=journal",
    "ext4 -O fast_commit",
    "ext4 -O mmp,orphan_file,^64bit",
    (
        "ext4 -O verity,encrypt,ea_inode,large_dir -E lazy_itable_init=1,lazy_journal_init=1 -o"
        " init_itable=1"
    ),
    "ext4 -O ^64bit,^extent",
    "ext4-external-journal",
    "ext3 -b 2048",
    "ext2 -b 1024",
]


@dataclass(frozen=True)
class Row:
    event: int
    time_ns: int
    disk: int
    offset: int
    length: int
    structure: str
    home: str | None
    home_offset: int | None
    cause: str
    inode: int | None
    transaction: int | None
    path: str | None


Table = tuple[list[Row], dict[str, int]]


def record(spelled: str, work: Workload, folder: Path, disk_mib: int = 200) -> Path:
    """Record one cell, which must succeed: no root test passes by skipping."""
    options = LabOptions(cell_dir=folder, disk_size_bytes=disk_mib * MIB)
    result = NativeLab(find_binaries()).run(
        Cell(profile.resolve(spelled), work, 0, 7, 0), options, lambda name: None
    )
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
    assert result.recording is not None
    return result.recording


def rows_of(recording: Path) -> Table:
    """Return our table of a recording, and the time of each mark."""
    disks = [disk["name"] for disk in capture._open(recording).info()["disks"]]
    explained = analyze.explain(recording)
    table = explained.table.rename_columns({"home_structure": "home"})
    columns = table.select(list(Row.__dataclass_fields__)).to_pydict()
    columns["disk"] = [disks.index(name) for name in columns["disk"]]
    rows = [Row(*values) for values in zip(*columns.values(), strict=True)]
    return rows, {mark.name: mark.at_ns for mark in explained.marks}


class Image:
    """e2fsprogs' view of one image."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = subprocess.run(["dumpe2fs", path], check=True, capture_output=True, text=True).stdout
        found = re.search(r"Block size:\s+(\d+)", text)
        assert found
        self.block_bytes = int(found[1])
        self.fixed: dict[int, str] = {}
        for what, first, last in re.findall(rf"({'|'.join(STRUCTURES)}) at (\d+)(?:-(\d+))?", text):
            for block in range(int(first), int(last or first) + 1):
                self.fixed[block] = STRUCTURES[what]
        self.fixed |= {
            int(block): "mmp" for block in re.findall(r"MMP block number:\s+(\d+)", text)
        }
        self.own_files = {
            int(inode): "orphan_file" for inode in re.findall(r"Orphan file inode:\s+(\d+)", text)
        }

    def ask(self, *commands: str) -> str:
        script = "\n".join(commands)
        return subprocess.run(
            ["debugfs", "-f", "-", self.path],
            input=script,
            check=True,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
        ).stdout

    def owners(self, blocks: list[int]) -> dict[int, int]:
        """Return the inode of each block that has one."""
        text = self.ask(
            *(
                f"icheck {' '.join(map(str, blocks[i : i + 500]))}"
                for i in range(0, len(blocks), 500)
            )
        )
        return {
            int(block): int(inode)
            for block, inode in re.findall(r"^(\d+)\t(\d+)$", text, re.MULTILINE)
        }

    def paths(self, inodes: set[int]) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {inode: set() for inode in inodes} | {2: {"/"}}
        for inode, path in re.findall(
            r"^(\d+)\t(.+)$", self.ask(f"ncheck {' '.join(map(str, inodes))}"), re.MULTILINE
        ):
            found.setdefault(int(inode), set()).add(path.replace("//", "/"))
        return found

    def structures(self, inode: int) -> tuple[str, dict[int, str]]:
        """Return the structure of an inode's blocks, and the exceptions by block."""
        text = self.ask(f"stat <{inode}>")
        kind = re.search(r"Type: (\w+)", text)
        assert kind
        special = {
            int(block): "extent_map"
            for block in re.findall(r"\((?:ETB\d|IND|DIND|TIND)\):(\d+)", text)
        }
        xattr = re.search(r"File ACL: (\d+)", text)
        if xattr:
            special[int(xattr[1])] = "xattr"
        flags = re.search(r"Flags: (0x\w+)", text)
        if flags and int(flags[1], 16) & HOLDS_VALUE:
            return "xattr", special
        return {"regular": "file_data", "directory": "directory", "symlink": "symlink"}.get(
            kind[1], kind[1]
        ), special

    def content(self, block: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(block * self.block_bytes)
            return file.read(self.block_bytes)


def last_writers(rows: list[Row], until_ns: int, block_bytes: int, disk: int = 0) -> dict[int, Row]:
    last = {}
    for row in rows:
        if row.time_ns < until_ns and row.disk == disk:
            for block in range(
                row.offset // block_bytes, -(-(row.offset + row.length) // block_bytes)
            ):
                last[block] = row
    return last


def check_owners(
    image: Image, last: dict[int, Row], begin_ns: int, rng: random.Random, has_journal: bool
) -> int:
    """Check that random blocks written in this phase are what e2fsprogs says.

    Without a journal, a row has no path if the path reached the disk only after the next flush.
    """
    unnamed = set() if has_journal else {None}
    new = sorted(block for block, row in last.items() if row.time_ns >= begin_ns)
    blocks = rng.sample(new, min(len(new), 1500))
    owners = image.owners(blocks)
    paths = image.paths({inode for inode in owners.values() if inode > 10})
    structures = {
        inode: image.structures(inode) for inode in set(owners.values()) if inode > 10 or inode == 2
    }
    for block in blocks:
        row, inode = last[block], owners.get(block)
        what = f"block {block} (inode {inode}): {row}"
        if block in image.fixed:
            assert row.structure == image.fixed[block], what
        elif inode is None:
            assert row.structure in OWNED, what  # belongs to a removed file
        elif inode == 8:
            assert row.structure.startswith("journal_"), what
        elif inode in image.own_files:
            assert (row.structure, row.inode) == (image.own_files[inode], inode), what
        else:
            usual, special = structures[inode]
            assert row.structure.removesuffix("_index") == special.get(block, usual), what
            assert row.inode == inode, what
            owner = re.match(rb"OWNER (\S+) ", image.content(block)) if usual == "xattr" else None
            if row.structure == "xattr" and not paths[inode]:
                assert row.path is not None, (
                    f"{what}: an attribute's own inode is told as the file's that has it"
                )
            else:
                named = {f"/{owner[1].decode()}"} if owner else paths[inode]
                assert row.path in named | unnamed, f"{what}: {paths[inode]}"
    return len(blocks)


def check_tags(image: Image, last: dict[int, Row], has_journal: bool) -> int:
    """Check that each tagged block is attributed to the file that its tag names, whether or not
    that file still exists.

    If a file has two names, the oldest one counts. Only a journal shows which one that is.
    """
    count = 0
    for block, row in last.items():
        tag = (
            re.match(rb"TAG (\S+) (\d+) ", image.content(block))
            if row.structure != "journal_copy"
            else None
        )
        if tag:
            assert row.structure == "file_data", f"{tag}: {row}"
            path = f"/{tag[1].decode()}"
            paths = {path} if has_journal else {path, HARD_LINKS.get(path), None}
            assert row.path in paths, f"{tag}: {row}"
            count += 1
    return count


def unclean(file: Path, superblock: int, position: int, sequence: int) -> None:
    """Write a journal superblock that says that the log begins at this position. `logdump` reads
    nothing from an empty log (or, with `-O`, omits the part around the end)."""
    with file.open("r+b") as journal:
        journal.seek(superblock + 0x18)
        journal.write(sequence.to_bytes(4, "big") + position.to_bytes(4, "big"))


def check_journal(image: Image, rows: list[Row], begin_ns: int, external: Path | None) -> int:
    """Check the journal since the last mount against `logdump`: the transaction of each copy, the
    block that it copies, and the contents of that block."""
    if external:
        disk, first = 1, 2 if image.block_bytes == 1024 else 1
        place = {block: block for block in range(external.stat().st_size // image.block_bytes)}
    else:
        disk, first = 0, 0
        extents = re.findall(
            r"\((\d+)(?:-(\d+))?\):(\d+)",
            image.ask("stat <8>").split("EXTENTS:")[-1].split("BLOCKS:")[-1],
        )
        place = {
            int(start) + at: int(block) + at
            for start, end, block in extents
            for at in range(int(end or start) - int(start) + 1)
        }
    position = {block: at for at, block in place.items()}
    last = last_writers(rows, 1 << 62, image.block_bytes, disk)
    log = [
        row
        for row in rows
        if row.time_ns >= begin_ns
        and row.disk == disk
        and row.structure.startswith("journal_")
        and row.transaction
    ]
    overwritten = {
        row.transaction or 0 for row in log if last[row.offset // image.block_bytes] is not row
    }
    descriptors = [
        row
        for row in log
        if row.structure == "journal_descriptor"
        and (row.transaction or 0) > max(overwritten, default=0)
    ]
    oldest = min(descriptors, key=lambda row: (row.transaction, row.event, row.offset))
    assert oldest.transaction
    file = external or image.path
    unclean(
        file,
        place[first] * image.block_bytes,
        position[oldest.offset // image.block_bytes],
        oldest.transaction,
    )
    count = 0
    sequence = 0
    for line in image.ask("logdump -a" + (f" -f {external}" if external else "")).splitlines():
        if found := re.match(r"Found expected sequence (\d+), type 1 ", line):
            sequence = int(found[1])
        found = re.match(r"\s*FS block (\d+) logged at (?:journal )?block (\d+) ", line)
        if not found:
            continue
        block, at = int(found[1]), place[int(found[2])]
        row = last[at]
        assert (row.structure, row.transaction) == ("journal_copy", sequence), row
        assert row.home_offset is not None
        assert row.home_offset + at * image.block_bytes - row.offset == block * image.block_bytes, (
            f"block {block} at {at}: {row}"
        )
        if block in image.fixed:
            assert row.home == image.fixed[block], f"block {block}: {row}"
        else:
            assert row.home in OWNED | set(image.own_files.values()), f"block {block}: {row}"
        count += 1
    return count


def check_checkpoints(rows: list[Row]) -> int:
    """Check that a home write of metadata names the last transaction that copied the block, if it
    names one."""
    # A commit's copies count from the commit on.
    commits = {row.transaction: row.event for row in rows if row.structure == "journal_commit"}
    order = [
        ((commits.get(row.transaction, row.event), 0), row.home_offset, row)
        for row in rows
        if row.home_offset is not None
    ]
    order += [
        ((row.event, 1), row.offset, row)
        for row in rows
        if row.disk == 0 and not row.structure.startswith("journal_")
    ]
    copied: dict[int, int | None] = {}
    count = 0
    for _, offset, row in sorted(order, key=lambda entry: entry[0]):
        for block in range(offset, offset + row.length, 1024):
            if row.structure == "journal_copy":
                copied[block] = row.transaction
            elif row.transaction is not None:
                assert copied.get(block) == row.transaction, f"{block}: {row}"
                count += 1
    return count


@pytest.mark.parametrize("spelled", some(PROFILES, 1, always=("ext4",)))
def test_every_block_is_what_e2fsprogs_says(spelled: str, tmp_path: Path, seed: int) -> None:
    shutil.copytree(
        Path(__file__).parent,
        tmp_path / "input",
        ignore=shutil.ignore_patterns("test_*", "__pycache__"),
    )
    steps = tuple(
        Step(phase, f"python3 {{input}}/steps.py {phase}", settle="remount") for phase in PHASES
    )
    recording = record(
        spelled,
        Workload("mine", steps, disk_bytes=MIB, input=tmp_path / "input"),
        tmp_path / "cell",
    )
    rows, marks = rows_of(recording)
    unknown = [row for row in rows if "unknown" in (row.structure, row.home, row.cause)]
    assert not unknown
    rng = random.Random(seed)
    checked = tags = 0
    has_journal = spelled.startswith(("ext4", "ext3")) and "^has_journal" not in spelled
    for phase, end in zip(PHASES, (*PHASES[1:], "end"), strict=True):
        export_image(capture._open(recording), 0, tmp_path / f"{phase}.img", mark=end)
        image = Image(tmp_path / f"{phase}.img")
        last = last_writers(rows, marks[end], image.block_bytes)
        checked += check_owners(image, last, marks[phase], rng, has_journal)
        tags += check_tags(image, last, has_journal)
    assert checked > 1000
    assert tags > 5000
    if has_journal:
        external = tmp_path / "journal.img" if spelled == "ext4-external-journal" else None
        if external:
            export_image(capture._open(recording), 1, external, mark="end")
        assert check_journal(image, rows, marks[PHASES[-1]], external) > 100
        assert check_checkpoints(rows) > 100


@pytest.mark.parametrize(
    ("name", "phases"),
    [("read-all", ("read", "read-again")), ("reader-beside-fsync", ("read", "read-beside-fsync"))],
)
def test_bytes_attributed_to_access_times_are_what_noatime_saves(
    name: str, phases: tuple[str, ...], tmp_path: Path
) -> None:
    """Home writes and journal together agree within 5 %.

    Access times are in inodes, so only inodes and the log are compared. The number of writes of
    data, bitmaps and the extents of the log of `reader-beside-fsync` depends on write-back and
    allocation by chance, and so does the choice of those that are revoked.
    """
    work = workload.resolve(name, scale=0.3)
    source = workload.inputs.prepare(work, tmp_path)
    written, attributed = {}, {}
    for options in ("strictatime", "noatime"):
        recording = record(
            f"ext4 -o {options},commit=600",
            Workload(name, work.steps, disk_bytes=MIB, input=source),
            tmp_path / options,
            512,
        )
        rows, marks = rows_of(recording)
        names = sorted(marks, key=lambda mark: marks[mark])
        of = [
            row
            for phase in phases
            for row in rows
            if marks[phase] <= row.time_ns < marks[names[names.index(phase) + 1]]
        ]
        of = [
            row
            for row in of
            if (row.home or row.structure)
            in ("inode_table", "journal_superblock", "journal_descriptor", "journal_commit")
        ]
        written[options] = sum(row.length for row in of)
        attributed[options] = sum(row.length for row in of if row.cause in ("atime", "atime+log"))
    assert attributed["noatime"] == 0
    saved = written["strictatime"] - written["noatime"]
    assert saved > MIB // 2
    assert attributed["strictatime"] == pytest.approx(saved, rel=0.05)
