"""How much of a family's tagged bytes may be without owner, or wrong, and why. What is not here is
not allowed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Shares of the bytes compared."""

    doubtful: float
    wrong: float
    reason: str


BOUNDS = {
    "ext": Bound(0.9, 0.9, "F1, F2 of issue 11 are open"),
    "xfs": Bound(0.6, 0.6, "F2, F3 of issue 11 are open"),
    "btrfs": Bound(0.6, 0.1, "F3 of issue 11 is open"),
    "f2fs": Bound(
        0.1,
        0.0,
        "what was written twice before any of its nodes was is at its first place without inode",
    ),
    "nilfs2": Bound(0.1, 0.6, "a number that is used again before a checkpoint"),
    "jfs": Bound(0.3, 0.6, "the log is not read"),
    "reiserfs": Bound(0.3, 0.6, "open"),
    "ntfs3": Bound(0.3, 0.3, "the log is not read"),
    "exfat": Bound(0.3, 0.3, "no inode numbers, and no generations"),
    "vfat": Bound(0.3, 0.1, "no inode numbers, and no generations"),
}
