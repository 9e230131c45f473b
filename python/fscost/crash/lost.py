"""The loss of one of several disks: what is left without it, and the documented ways back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost.crash import arrays
from fscost.crash.promises import UNPROMISED

ARRAY = "md"
"""Stands for the family of a file system on an array."""
HOWS: Mapping[str, str] = {
    "gone": "the disk is not there any more",
    "blank": "an empty disk of the same size is in its place",
    "stale": "the disk is as it was when the workload began",
}
"""How a disk can be lost."""


def hows(family: str) -> Sequence[str]:
    """Return how a disk of this family can be lost. Neither btrfs nor md sees an empty disk as its
    own, so that it is gone."""
    return [how for how in HOWS if how != "blank" or family not in ("btrfs", ARRAY)]


@dataclass(frozen=True)
class Way:
    """One way to use a file system again. `commands` run first; `{main}` is the main disk, `{lost}`
    the one that was lost, and `{new}` an empty disk of its size, which takes its place if
    `is_replaced`. `mounted` are commands that run after the mount, in whose words `{root}` is the
    mounted folder. `assembly`: flags that assemble an array."""

    name: str
    commands: Sequence[Sequence[str]] = ()
    options: Sequence[str] = ()
    is_replaced: bool = False
    is_forgotten: bool = False
    mounted: Sequence[Sequence[str]] = ()
    assembly: Sequence[str] = ()

    @property
    def is_read_only(self) -> bool:
        """True if the way gives access for a rescue, not a file system to go on with."""
        return "ro" in self.options


_PLAIN = Way("mount")
_CHECK = ("e2fsck", "-fy", "{main}")
# Without the second -f, tune2fs refuses a file system that needs recovery. With it, e2fsprogs
# 1.47.0 still tries to recover it, so that the flag goes first. The first e2fsck of 1.47.2 clears
# the feature orphan_file, which needs a journal, and only the next one frees that file's inode.
_NO_JOURNAL = (("tune2fs", "-f", "-f", "-O", "^has_journal", "{main}"), _CHECK, _CHECK)
_NO_RECOVERY = ("debugfs", "-w", "-R", "feature -needs_recovery", "{main}")
_NEW_JOURNAL = (
    ("mke2fs", "-q", "-F", "-b", "{block}", "-O", "journal_dev", "{new}"),
    ("tune2fs", "-J", "device={new}", "{main}"),
)
WAYS: Mapping[str, Sequence[Way]] = {
    # ext4.rst (noload); e2fsck(8); tune2fs(8), -f and -J; debugfs(8), feature.
    "ext": (
        _PLAIN,
        Way("mount -o ro,noload", options=("ro", "noload")),
        Way("e2fsck -fy", (_CHECK,)),
        Way("tune2fs -ff -O ^has_journal, e2fsck -fy twice", _NO_JOURNAL, is_forgotten=True),
        Way(
            "debugfs: feature -needs_recovery, then those",
            (_NO_RECOVERY, *_NO_JOURNAL),
            is_forgotten=True,
        ),
        Way(
            "the same, then tune2fs -J device=NEW",
            (_NO_RECOVERY, *_NO_JOURNAL, *_NEW_JOURNAL),
            is_replaced=True,
        ),
    ),
    # admin-guide/xfs.rst (norecovery); xfs_repair(8), -l and -L.
    "xfs": (
        _PLAIN,
        Way("mount -o ro,norecovery", options=("ro", "norecovery")),
        Way("xfs_repair", commands=(("xfs_repair", "{main}"),)),
        Way("xfs_repair -L", commands=(("xfs_repair", "-L", "{main}"),)),
        Way(
            "xfs_repair -L -l NEW",
            (("xfs_repair", "-L", "-l", "{new}", "{main}"),),
            is_replaced=True,
        ),
    ),
    # btrfs(5) (degraded); btrfs-replace(8); btrfs-scrub(8).
    "btrfs": (
        _PLAIN,
        Way("mount -o degraded", options=("degraded",)),
        Way(
            "the same, then btrfs replace",
            options=("degraded",),
            mounted=(
                ("btrfs", "replace", "start", "-f", "-B", "{number}", "{new}", "{root}"),
                ("btrfs", "scrub", "start", "-B", "{root}"),
            ),
        ),
    ),
    # mdadm(8), --run and --force of the assemble mode.
    ARRAY: (
        Way("mdadm --assemble --run", assembly=arrays.PLAIN),
        Way("mdadm --assemble --run --force", assembly=arrays.FORCED),
    ),
}
"""What the manual pages of each family offer, in the order in which one tries it."""


@dataclass(frozen=True)
class Lost:
    """The loss of a disk, and one way back. `mounts`, `whole` and `clean`: how many of `tried`
    states mounted, kept every promise too, and had no error after that either. `example`: the first
    broken promise, in words."""

    disk: str
    how: str
    way: str
    is_read_only: bool
    tried: int
    mounts: int
    whole: int
    clean: int
    words: Sequence[str]
    example: str = ""


def _broken(found: Mapping[str, Any]) -> list[str]:
    return [f"{where}: {kind}" for kind, where in found["broken"] if kind not in UNPROMISED]


def summed(disk: str, how: str, way: Way, found: Sequence[Mapping[str, Any]]) -> Lost:
    """Sum up what one way back found in several states."""
    whole = [each for each in found if each["mounts"] and not _broken(each)]
    bad = [each for each in found if each not in whole or not each["is_clean"]]
    return Lost(
        disk,
        how,
        way.name,
        way.is_read_only,
        len(found),
        sum(each["mounts"] for each in found),
        len(whole),
        sum(each["is_clean"] for each in whole),
        bad[0]["words"] if bad else (),
        next((each for told in found for each in _broken(told)), ""),
    )
