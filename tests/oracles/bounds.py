"""Bounds on the error of rows of tagged bytes, by family and kind of workload, and the reasons for
them."""

from dataclasses import dataclass

SHARES = ("silent", "doubtful_right", "doubtful_wrong", "missing")


@dataclass(frozen=True)
class Bound:
    """Shares of the bytes compared in one draw."""

    silent: float
    """Rows that are wrong and not marked as doubtful."""
    doubtful_right: float
    """Rows that are right although marked as doubtful."""
    doubtful_wrong: float
    """Rows that are marked as doubtful, and lack something or are wrong."""
    missing: float
    """Rows not marked as doubtful that lack an inode or a name that was on the disk."""
    reason: str


NO_JOURNAL = "ext without a journal"
BOUNDS = {
    # Silent errors, doubtful rows, missing names.
    "ext": (
        0.01,
        0.1,
        0.3,
        "an unlinked open file keeps its last name, wherever that directory is moved",
    ),
    NO_JOURNAL: (
        0.03,
        0.7,
        0.3,
        "names reach the disk after data; a block used again may stay its first owner's",
    ),
    "xfs": (0.015, 0.1, 0.3, "a clone and its source in one checkpoint"),
    "btrfs": (
        0.03,
        0.5,
        0.3,
        "direct I/O overwritten before a commit; a directory renamed between an fsync and a commit",
    ),
    "f2fs": (0.02, 0.15, 0.1, "a block written twice before any node of it is"),
    "nilfs2": (0.02, 0.1, 0.1, "names of a file that an fdatasync wrote before a checkpoint"),
    "jfs": (0.2, 0.95, 0.3, "nointegrity has no log: a block may have had another file since"),
    "reiserfs": (0.06, 0.2, 0.2, "a block that changes owner twice in a transaction"),
    "ntfs3": (0.015, 0.3, 0.1, "no log: a cluster may have had a file that no record had"),
    "exfat": (0.1, 0.7, 0.2, "inodes are first clusters: no numbers, no generations"),
    "vfat": (0.05, 0.2, 0.6, "inodes are first clusters: no numbers, no generations"),
}


BY_KIND = {
    # Blocks of a freed map of extents are taken for those of the truncated file.
    ("xfs", "clones"): (0.6, 0.1, 0.1, 0.3),
    ("btrfs", "threads"): (0.05, 0.5, 0.5, 0.3),
    (NO_JOURNAL, "renames"): (0.25, 0.7, 0.7, 0.3),
    (NO_JOURNAL, "threads"): (0.1, 0.7, 0.7, 0.3),
}
"""Exceptions from BOUNDS by family and kind of workload."""


def bound(family: str, kind: str) -> Bound:
    """Return the bound on draws of this family and kind of workload."""
    silent, doubtful, missing, reason = BOUNDS[family]
    shares = BY_KIND.get((family, kind), (silent, doubtful, doubtful, missing))
    return Bound(*shares, reason)
