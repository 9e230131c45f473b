"""Recovery state: what a mount of the disks at an instant would start from, in each file system's
own terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fscost import capture


@dataclass(frozen=True)
class Logged:
    """An inode in a log tree; `tree` is its subvolume."""

    tree: int
    inode: int
    path: str | None


@dataclass(frozen=True)
class BtrfsRecovery:
    """State of btrfs: its newest superblock. `is_sound`: the root tree that it references is there.
    `logged`: the first of `logged_count` inodes in log trees."""

    family: ClassVar[str] = "btrfs"
    unit: ClassVar[str] = "commit"
    generation: int
    is_sound: bool
    logged_count: int
    logged: Sequence[Logged]

    def has(self, generation: int) -> bool:
        """Check that a mount would find this commit, or a later one."""
        return generation <= self.generation

    def json(self) -> dict[str, Any]:
        """Convert to the printed JSON form."""
        return {"family": self.family, **vars(self), "logged": [vars(each) for each in self.logged]}


@dataclass(frozen=True)
class XfsRecovery:
    """State of xfs: the log from its tail to its head, between which all records are complete.
    `replayed` and `unfinished` hold the beginnings of checkpoints with and without a commit."""

    family: ClassVar[str] = "xfs"
    unit: ClassVar[str] = "checkpoint"
    tail: int
    head: int
    records: int
    bytes: int
    items: int
    replayed: frozenset[int]
    unfinished: frozenset[int]

    def has(self, checkpoint: int) -> bool:
        """Check that a mount would find this checkpoint: in its log, or (before the tail) in
        place."""
        return checkpoint in self.replayed or checkpoint < self.tail

    def json(self) -> dict[str, Any]:
        """Convert to the printed JSON form."""
        return {
            "family": self.family,
            "tail": place(self.tail),
            "head": place(self.head),
            "records": self.records,
            "log_bytes": self.bytes,
            "checkpoints": len(self.replayed),
            "items": self.items,
            "unfinished_checkpoints": len(self.unfinished),
        }


Recovery = BtrfsRecovery | XfsRecovery


def recovery(
    recording: Path, families: Mapping[str, str | None], at_ns: int, lost: Sequence[int]
) -> Recovery | None:
    """Return the recovery state if these events (ascending) had not reached the disks; None if
    there is no log, or none that is supported."""
    known = list(families.values())
    for found in capture.recovery(recording, at_ns, lost):
        if found["family"] == known[found["disk"]]:
            return _btrfs(found) if found["family"] == BtrfsRecovery.family else _xfs(found)
    return None


def place(number: int) -> str:
    """Format a position in xfs's log as cycle and block, as /sys/fs/xfs/…/log does."""
    return f"{number >> 32}:{number & 0xFFFFFFFF}"


def _btrfs(found: Mapping[str, Any]) -> BtrfsRecovery:
    logged = [Logged(**each) for each in found["logged"]]
    return BtrfsRecovery(found["generation"], found["is_sound"], found["logged_count"], logged)


def _xfs(found: Mapping[str, Any]) -> XfsRecovery:
    replayed, unfinished = (
        frozenset(each["lsn"] for each in found[name]) for name in ("checkpoints", "unfinished")
    )
    items = sum(each["items"] for each in found["checkpoints"])
    return XfsRecovery(
        found["tail"], found["head"], found["records"], found["bytes"], items, replayed, unfinished
    )
