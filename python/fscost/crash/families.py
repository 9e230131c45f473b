"""What the manual pages of each family of file systems say about its recovery, check and repair."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """`check` changes nothing, and ends with 0 if it finds no error. `repair` is what the
    documentation recommends. `before`: the recovery that a machine runs before each mount, if the
    kernel does not recover itself."""

    check: Sequence[str] = ()
    repair: Sequence[str] = ()
    before: Sequence[str] = ()


REPAIRED = (0, 1, 2)
"""Exit status of a repair after which no error is left (fsck(8))."""
FAMILIES: Mapping[str, Family] = {
    "ext": Family(("e2fsck", "-fn"), ("e2fsck", "-fy")),
    # It finds the same without prefetching and with few buffers, but starts in half the time.
    "xfs": Family(("xfs_repair", "-n", "-P", "-o", "bhash=512"), ("xfs_repair", "-L")),
    # `btrfs check --repair` is not recommended (btrfs-check(8)).
    "btrfs": Family(("btrfs", "check")),
    "f2fs": Family(("fsck.f2fs", "--dry-run"), ("fsck.f2fs", "-f", "-y")),
    # There is no check: all is read instead.
    "nilfs2": Family(),
    # Only jfs_fsck(8) replays the log: the kernel refuses to mount a dirty jfs.
    "jfs": Family(("jfs_fsck", "-n"), ("jfs_fsck", "-f"), ("jfs_fsck", "-a")),
    "reiserfs": Family(
        ("reiserfsck", "--check", "-y", "-q"), ("reiserfsck", "--fix-fixable", "-y", "-q")
    ),
    "exfat": Family(("fsck.exfat", "-n"), ("fsck.exfat", "-y")),
    "vfat": Family(("fsck.vfat", "-n"), ("fsck.vfat", "-y")),
    # ntfsfix(8) repairs some errors, and is no full check.
    "ntfs3": Family(("ntfsfix", "-n"), ("ntfsfix", "-d")),
}


def family(type_: str) -> str:
    """Return the family of a file system type."""
    return "ext" if type_.startswith("ext") else type_


def programs(type_: str) -> Iterator[str]:
    """Yield the programs that the examination of a type needs."""
    found = FAMILIES[family(type_)]
    yield from dict.fromkeys(
        words[0] for words in (found.check, found.repair, found.before) if words
    )
