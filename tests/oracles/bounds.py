"""Bounds on the error of rows of tagged bytes, by kind of file system, and the reasons for them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Shares of the bytes compared in one draw."""

    silent: float
    """Rows that are wrong and not marked as doubtful."""
    doubtful: float
    """Rows whose owner is marked as doubtful, right or not."""
    missing: float
    """Rows not marked as doubtful that lack an inode or a name that was on the disk."""
    reason: str


NO_JOURNAL = "ext without a journal"
BOUNDS = {
    "ext": Bound(
        0.01,
        0.1,
        0.3,
        "an unlinked open file keeps its last name, wherever that directory is moved",
    ),
    NO_JOURNAL: Bound(
        0.03,
        0.7,
        0.3,
        "names reach the disk after data; a block that is used again before the same flush may "
        "stay its first owner's",
    ),
    "xfs": Bound(0.015, 0.1, 0.3, "a clone and its source in one checkpoint"),
    "btrfs": Bound(
        0.03,
        0.5,
        0.3,
        "direct I/O overwritten before a commit; a directory renamed between an fsync and a commit",
    ),
    "f2fs": Bound(0.02, 0.15, 0.1, "a block written twice before any node of it is"),
    "nilfs2": Bound(0.02, 0.1, 0.1, "names of a file that an fdatasync wrote before a checkpoint"),
    "jfs": Bound(0.2, 0.95, 0.3, "nointegrity has no log: a block may have had another file since"),
    "reiserfs": Bound(0.06, 0.2, 0.2, "a block that changes owner twice in a transaction"),
    "ntfs3": Bound(0.015, 0.3, 0.1, "no log: a cluster may have had a file that no record had"),
    "exfat": Bound(0.1, 0.7, 0.2, "inodes are first clusters: no numbers, no generations"),
    "vfat": Bound(0.05, 0.2, 0.6, "inodes are first clusters: no numbers, no generations"),
}
