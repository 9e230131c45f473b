"""Checks of our rows against the file systems' own tools, block by block of an image."""

import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tests.analysis.btrfs import test_btrfs as btrfs
from tests.analysis.btrfs import tools
from tests.analysis.ext.test_ext import OWNED, Image

SECTOR = 512
BLOCKS = 400
"""Maximum number of blocks per image that the tools are asked about."""

XFS_KINDS = {
    "data": {"file_data", "extent_map"},
    "rldata": {"file_data", "extent_map"},
    "dir": {"directory", "directory_index", "extent_map"},
    "attr": {"xattr", "extent_map"},
    "symlink": {"symlink"},
    "inode": {"inode_chunk"},
    "agf": {"agf"},
    "agi": {"agi"},
    "agfl": {"agfl"},
    "sb": {"superblock", "superblock_backup"},
    "btbno": {"free_space_btree"},
    "btcnt": {"free_space_btree"},
    "btino": {"inode_btree"},
    "btfino": {"free_inode_btree"},
    "btrmap": {"rmap_btree"},
    "btrefcnt": {"refcount_btree"},
    "log": {"log"},
}
XFS_MAGIC = {
    b"XARM": (40, "attr"),
    b"XSLM": (48, "symlink"),
    b"XDB3": (8, "dir"),
    b"XDD3": (8, "dir"),
    b"XDF3": (8, "dir"),
    b"BMA3": (24, "data"),
}
"""Magic number of a block, the offset of the block's own address, and xfs_db's name for the
block."""


@dataclass(frozen=True)
class Row(btrfs.Row):
    """Columns of the table that are compared."""

    home: str | None
    home_offset: int | None
    phase: str
    doubtful: bool


class LastWriters:
    """The row that last wrote each sector of a disk before a phase."""

    def __init__(
        self, table: pa.Table, phases: Sequence[str], image: Path, disk: str = "main"
    ) -> None:
        columns = [
            "home_structure" if name == "home" else name for name in Row.__dataclass_fields__
        ]
        within = table.filter(
            pc.and_(pc.equal(table["disk"], disk), pc.is_in(table["phase"], pa.array(phases)))
        ).select(columns)
        self.rows = [Row(*values) for values in zip(*within.to_pydict().values(), strict=True)]
        self.image = np.memmap(image, dtype=np.uint8, mode="r").reshape(-1, SECTOR)
        self.sectors = np.full(len(self.image), -1, dtype=np.int64)
        for number, row in enumerate(self.rows):
            self.sectors[row.offset // SECTOR : -(-(row.offset + row.length) // SECTOR)] = number

    def at(self, byte: int) -> Row | None:
        number = self.sectors[byte // SECTOR]
        return self.rows[number] if number >= 0 else None

    def sample(self, block_bytes: int, rng: random.Random) -> list[int]:
        """Return byte offsets of blocks that the workload wrote, and of some that mkfs wrote."""
        numbers = self.sectors[:: block_bytes // SECTOR]
        by_workload = np.array([row.phase not in ("before", "mkfs") for row in self.rows] + [False])
        mine, other = (
            np.nonzero(by_workload[numbers])[0],
            np.nonzero((numbers >= 0) & ~by_workload[numbers])[0],
        )
        chosen = rng.sample(mine.tolist(), min(len(mine), BLOCKS)) + rng.sample(
            other.tolist(), min(len(other), BLOCKS // 4)
        )
        return [block * block_bytes for block in chosen]

    def tagged(self, at: int, length: int) -> int | None:
        """Return the inode that a block's tag names."""
        tag = re.search(
            rb"TAG (\d+) ", self.image[at // SECTOR : (at + length) // SECTOR].tobytes()
        )
        return int(tag[1]) if tag else None

    def xfs_kind(self, at: int) -> str | None:
        """Return the structure that a block's magic number names, if the block also has its own
        address: then it was written as that structure."""
        sector = self.image[at // SECTOR].tobytes()
        address, kind = XFS_MAGIC.get(sector[:4], (0, None))
        names_itself = int.from_bytes(sector[address : address + 8], "big") == at // SECTOR
        return kind if names_itself else None

    def is_zero(self, at: int, length: int) -> bool:
        """True if the range holds only zeros."""
        return not self.image[at // SECTOR : (at + length) // SECTOR].any()

    def owned(self, at: int, length: int) -> int | None:
        """Return the inode whose attribute a block holds."""
        tag = re.search(
            rb"OWNER (\d+) ", self.image[at // SECTOR : (at + length) // SECTOR].tobytes()
        )
        return int(tag[1]) if tag else None

    def tags(self) -> Iterator[tuple[Row, int, int]]:
        """Yield each sector that names its owner: the row, the byte offset on the disk, the
        inode."""
        written = np.nonzero(self.sectors >= 0)[0]
        tagged = written[
            (self.image[written, :4] == np.frombuffer(b"TAG ", dtype=np.uint8)).all(axis=1)
        ]
        for sector in tagged.tolist():
            if match := re.match(rb"TAG (\d+) \d+ \d+ \.", self.image[sector].tobytes()):
                yield self.rows[self.sectors[sector]], sector * SECTOR, int(match[1])


@dataclass
class Names:
    """All names that each inode ever had.

    A directory may reach the disk without its parents (no journal, an fsync's log tree or fast
    commit). Then a path on the disk may be one that never existed as a whole, but each of its steps
    must have existed.
    """

    is_atomic: bool
    has_inodes: bool = True
    """False for FAT, which has no inodes: a file is known by its first cluster, and the kernel
    invents inode numbers."""
    root: int = 0
    lost: set[int] = field(default_factory=set)
    """Inodes of files that were removed, truncated or overwritten. Their earlier data may never
    have belonged to an inode on the disk."""
    paths: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    steps: defaultdict[tuple[int, str], set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, inode: int, parent: int, path: str) -> None:
        self.paths[inode].add(path)
        if path.count("/") == 1:
            self.root = parent
        self.steps[parent, Path(path).name].add(inode)

    def has(self, inode: int | None, path: str | None) -> bool:
        if inode is None or path is None:
            return False
        if path in self.paths[inode] or self.is_atomic:
            return path in self.paths[inode]
        at = {self.root}
        for name in path.removeprefix("/").split("/"):
            at = {found for parent in at for found in self.steps[parent, name]}
        return inode in at


def check_tags(last: LastWriters, names: Names) -> int:
    """Check that data that the workload wrote is attributed to the file that its tag names,
    wherever it is stored and was stored."""
    count = lost = 0
    for row, at, inode in last.tags():
        if "tree" in (row.home or row.structure) or row.structure in ("node", "mft"):
            continue  # btrfs, reiserfs, f2fs and NTFS keep short files there
        what = f"byte {at} is of inode {inode}, {sorted(names.paths[inode])}: {row}"
        if at > row.offset and (row.home or row.structure) in (
            "directory",
            "directory_index",
            "symlink",
        ):
            continue  # bytes after names or a symlink's target keep their old contents
        if row.structure == "journal_copy" or row.structure == "log":
            assert row.home == "file_data" or row.structure == "log", what
            continue
        if row.structure == "unknown" and inode in names.lost and not names.has_inodes:
            lost += 1
            continue
        if row.doubtful:
            continue
        assert row.structure == "file_data", what
        # A file may be created and removed between two commits. Then its name, or any trace of the
        # file, never reached the disk.
        is_told = row.inode == inode or not names.has_inodes
        if inode in names.lost and (row.inode is None or (is_told and row.path is None)):
            lost += 1
            continue
        assert row.inode == inode or not names.has_inodes, what
        assert names.has(inode, row.path), what
        count += 1
    # If blocks are freed before a commit, nothing on the disk names their owner. Compressed data
    # shows few tags.
    assert lost <= (count + lost) // 5, f"{lost} of {count + lost} sectors are of no inode"
    return count


def check_ext(image: Path, last: LastWriters, names: Names, rng: random.Random) -> int:
    """Compare blocks with `dumpe2fs` and with `icheck` and `stat` of debugfs."""
    theirs = Image(image)
    blocks = [at // theirs.block_bytes for at in last.sample(theirs.block_bytes, rng)]
    owners = theirs.owners(blocks)
    structures = {
        inode: theirs.structures(inode)
        for inode in set(owners.values())
        if inode > 10 or inode == 2
    }
    for block in blocks:
        row, inode = last.at(block * theirs.block_bytes), owners.get(block)
        assert row
        what = f"block {block} (inode {inode}): {row}"
        if block in theirs.fixed:
            assert row.structure == theirs.fixed[block], what
        elif inode in theirs.own_files:
            assert row.structure == theirs.structures(inode)[1].get(
                block, theirs.own_files[inode]
            ), what
        elif inode in structures:
            usual, special = structures[inode]
            assert row.structure.removesuffix("_index") == special.get(block, usual), what
            if row.phase in ("before", "mkfs"):
                continue  # for blocks that mkfs writes, we give the structure but no owner
            # Several inodes may share one block of attributes. A block that is allocated to an
            # inode but not yet written still belongs to its former owner.
            given = row.structure == "file_data" and row.inode == last.tagged(
                block * theirs.block_bytes, theirs.block_bytes
            )
            assert row.inode == inode or row.structure == "xattr" or given, what
            called = row.inode
            if usual == "xattr" and (
                owner := last.owned(block * theirs.block_bytes, theirs.block_bytes)
            ):
                called = owner
            is_shared = usual == "xattr" and called == row.inode
            assert (
                row.path in ("/", "/lost+found")
                or names.has(called, row.path)
                or (row.path is None and not names.is_atomic)
                or (is_shared and row.path)
            ), f"{what}: {names.paths[inode]}"
        elif inode == 8:
            assert row.structure == theirs.structures(8)[1].get(block) or row.structure.startswith(
                "journal_"
            ), what
        elif inode is None:
            assert row.structure in OWNED | {"unused", "mmp"} or row.phase in ("before", "mkfs"), (
                what
            )
    return len(blocks)


def check_xfs(image: Path, last: LastWriters, names: Names, rng: random.Random) -> int:
    """Compare blocks with `blockuse` of xfs_db."""
    facts = dict(
        re.findall(
            r"^(\w+) = (\d+)$",
            _xfs_db(image, ["sb 0", "p blocksize agblocks agblklog"]),
            re.MULTILINE,
        )
    )
    size, group, shift = (int(facts[name]) for name in ("blocksize", "agblocks", "agblklog"))
    places = last.sample(size, rng)
    commands = ["blockget -n"]
    for at in places:
        block = at // size
        commands += [f"fsblock {(block // group) << shift | block % group}", "blockuse"]
    uses = re.findall(
        r"^block \d+ \(\S+\) type (\S+)(?: inode (\d+))?", _xfs_db(image, commands), re.MULTILINE
    )
    assert len(uses) == len(places)
    compared = 0
    for at, (kind, inode) in zip(places, uses, strict=True):
        row = last.at(at)
        assert row
        # Freed since, never used, or headers of several kinds in one block.
        if (
            kind.startswith("free")
            or row.structure == "unused"
            or (kind in ("sb", "agf", "agi", "agfl") and row.length < size)
        ):
            continue
        what = f"block at {at} is {kind} of inode {inode}: {row}"
        # A freed block that is allocated to a file but not yet written keeps its former contents,
        # or none if it was discarded.
        if kind == "data" and row.structure != "file_data":
            if last.is_zero(at, size):
                continue
            assert row.structure in XFS_KINDS[last.xfs_kind(at) or kind], what
        else:
            assert row.structure in XFS_KINDS[kind], what
        compared += 1
        if inode and row.structure == "file_data":
            # A block that is allocated to an inode but not yet written belongs to its former owner.
            # Zeros do not show an owner.
            assert row.inode in (int(inode), last.tagged(at, size)) or last.is_zero(at, size), what
            assert names.has(row.inode, row.path), f"{what}: {names.paths[int(inode)]}"
    return compared


def _xfs_db(image: Path, commands: list[str]) -> str:
    log = image.with_suffix(".log")
    words = ["xfs_db", "-r", *(["-l", log] if log.exists() else []), image]
    answer = subprocess.run(
        words, input="\n".join(commands) + "\n", check=True, capture_output=True, text=True
    )
    return answer.stdout.replace("xfs_db> ", "")


def check_btrfs(image: Path, last: LastWriters, names: Names, rng: random.Random) -> int:
    """Compare blocks with `dump-tree`: each tree's blocks and each file's extents, in every
    copy."""
    theirs = tools.read([image], 0)
    called = tools.Image(
        [],
        0,
        names=defaultdict(
            set,
            {
                (5, inode): {(0, Path(path).name) for path in paths}
                for inode, paths in names.paths.items()
            },
        ),
    )
    writers = {
        (0, at): last.rows[number]
        for at, number in enumerate(last.sectors[:: tools.SECTOR // SECTOR].tolist())
        if number >= 0
    }
    return btrfs.check_blocks(theirs, writers) + btrfs.check_data(theirs, writers, rng, [called])


CHECKS: Mapping[str, Any] = {"ext": check_ext, "xfs": check_xfs, "btrfs": check_btrfs}
