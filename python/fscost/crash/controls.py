"""Known answers: profiles whose faults are certain, and others that must have none. An examination
that gets one of them wrong says nothing about other profiles.

The faults are those that the kernel's own code and documentation explain: jbd2 and btrfs send no
flush with nobarrier; ext4 shows old blocks with data=writeback, unless it allocates late; a rename
over a file syncs nothing by itself; ext2 has no journal.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fscost.crash.verdict import FAULTS

_ANY_ORDER, _IN_ORDER = "reorder-4k", "in-order"
_NONE = tuple(FAULTS.values())


@dataclass(frozen=True)
class Known:
    """A profile on a device, which faults some of its states must have, and which none may."""

    profile: str
    device: str = _ANY_ORDER
    some: tuple[str, ...] = ()
    none: tuple[str, ...] = _NONE

    @property
    def is_safe(self) -> bool:
        """True if no state may have a fault."""
        return self.none == _NONE

    def is_right(self, counts: Mapping[str, int]) -> bool:
        """True if the numbers of states are as they must be."""
        return all(counts[word] for word in self.some) and not any(counts[w] for w in self.none)


KNOWN = (
    Known("ext4 -o nobarrier", some=("lost", "repaired"), none=()),
    Known("ext4 -o nobarrier", _IN_ORDER, some=("lost",), none=("corrupt", "repaired")),
    Known("btrfs -o nobarrier", some=("lost", "corrupt"), none=()),
    Known("btrfs -o nobarrier", _IN_ORDER, some=("lost",), none=("corrupt", "repaired")),
    Known("ext4 -o data=writeback,nodelalloc", some=("stale",), none=("lost", "corrupt")),
    Known("ext3 -o data=writeback", some=("stale",), none=("lost", "corrupt")),
    Known("ext2", some=("repaired",), none=("corrupt",)),
    Known("ext4 -o noauto_da_alloc", some=("emptied",)),
    Known("xfs", some=("emptied",)),
    Known("btrfs", some=("emptied",)),
    Known("ext4"),
    Known("ext4 -o nodelalloc"),
    Known("ext4 -o data=writeback"),
    Known("ext4 -o data=journal"),
    Known("ext4 -O fast_commit"),
    Known("btrfs -o notreelog"),
)
