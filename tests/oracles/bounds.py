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


NO_JOURNAL, WRITEBACK = "ext without a journal", "ext with data=writeback"
Shares = tuple[float, float, float, float]
BY_KIND: dict[str, dict[str, Shares]] = {
    "ext": {
        "mixed": (0.02, 0.02, 0.18, 0.08),
        "renames": (0.01, 0.02, 0.03, 0.02),
        "replace": (0.01, 0.02, 0.12, 0.02),
        "threads": (0.05, 0.02, 0.12, 0.05),
        "attributes": (0.01, 0.02, 0.02, 0.02),
    },
    WRITEBACK: {
        "mixed": (0.12, 0.34, 0.02, 0.14),
        "renames": (0.04, 0.04, 0.02, 0.02),
        "replace": (0.17, 0.06, 0.28, 0.02),
        "threads": (0.05, 0.09, 0.10, 0.04),
        "attributes": (0.01, 0.03, 0.02, 0.02),
    },
    NO_JOURNAL: {
        "mixed": (0.03, 0.29, 0.57, 0.02),
        "renames": (0.02, 0.43, 0.46, 0.02),
        "replace": (0.01, 0.05, 0.65, 0.02),
        "threads": (0.03, 0.27, 0.61, 0.02),
        "attributes": (0.01, 0.09, 0.51, 0.02),
    },
    "xfs": {
        "mixed": (0.01, 0.1, 0.02, 0.02),
        "renames": (0.01, 0.02, 0.02, 0.02),
        "replace": (0.01, 0.02, 0.02, 0.02),
        "clones": (0.03, 0.09, 0.03, 0.02),
        "threads": (0.02, 0.02, 0.09, 0.02),
        "attributes": (0.02, 0.02, 0.02, 0.02),
    },
    "btrfs": {
        "mixed": (0.16, 0.12, 0.75, 0.11),
        "renames": (0.02, 0.71, 0.31, 0.02),
        "replace": (0.01, 0.02, 0.41, 0.48),
        "clones": (0.05, 0.02, 0.13, 0.02),
        "threads": (0.05, 0.05, 0.65, 0.16),
        "attributes": (0.01, 0.02, 1, 0.02),
    },
}
"""Shares by family and kind: about twice those of the worst of the draws in docs/explaining.md. The
least bound is 0.01 on silent errors, and 0.02 on the rest."""
OF_GUESTS: dict[str, Shares] = {
    "f2fs": (0.02, 0.2, 0.4, 0.02),
    "nilfs2": (0.02, 0.02, 0.1, 0.05),
    "jfs": (0.2, 0.2, 0.95, 0.3),
    "reiserfs": (0.06, 0.1, 0.2, 0.2),
    "ntfs3": (0.06, 0.2, 0.3, 0.1),
    "exfat": (0.1, 0.3, 0.7, 0.2),
    "vfat": (0.02, 0.35, 0.09, 0.05),
}
"""Shares by family, for the kinds that WORSE does not name. Two to five draws of a kind are too few
to lower a bound."""
WORSE: dict[str, dict[str, Shares]] = {
    "f2fs": {"mixed": (0.08, 0.2, 0.4, 0.02), "replace": (0.02, 0.2, 0.4, 0.09)},
    "jfs": {
        "mixed": (0.2, 0.29, 0.95, 0.3),
        "renames": (0.53, 0.26, 0.95, 0.3),
        "replace": (0.47, 0.2, 1, 0.3),
    },
    "reiserfs": {"replace": (0.06, 0.16, 0.2, 0.2)},
    "ntfs3": {
        "mixed": (0.09, 0.3, 0.3, 0.1),
        "renames": (0.05, 0.79, 0.3, 0.1),
        "attributes": (0.06, 0.1, 0.3, 0.17),
    },
    "exfat": {
        "mixed": (0.1, 0.32, 0.78, 0.2),
        "renames": (0.1, 0.66, 0.7, 0.2),
        "replace": (0.1, 0.31, 0.7, 0.2),
    },
    "vfat": {"renames": (0.02, 0.39, 0.58, 0.09)},
}
"""Shares of the kinds in guests of which a draw exceeded half the family's bound: twice those of the
worst draw."""
REASONS = {
    "ext": "an unlinked open file keeps its last name, wherever that directory is moved",
    WRITEBACK: "data may be written after the commit that names its owner, or another file's",
    NO_JOURNAL: "names reach the disk after data; a block used again may stay its first owner's",
    "xfs": "a file that was renamed or removed before its data was written; a block's next owner",
    "btrfs": "direct I/O overwritten before a commit; a directory renamed before the next commit",
    "f2fs": "a block rewritten before its node is written; a directory renamed meanwhile",
    "nilfs2": "names of a file that an fdatasync wrote before a checkpoint",
    "jfs": "nointegrity has no log: a block may have had another file since",
    "reiserfs": "a block that changes owner twice in a transaction",
    "ntfs3": "no log: a cluster may have had a file that no record had; a renamed directory",
    "exfat": "inodes are first clusters: no numbers, no generations",
    "vfat": "names reach the disk one by one, below directories whose new name does not",
}


def bound(family: str, kind: str) -> Bound:
    """Return the bound on draws of this family and kind of workload."""
    known = BY_KIND.get(family) or WORSE.get(family, {})
    shares = known.get(kind) or OF_GUESTS[family]
    return Bound(*shares, REASONS[family])
