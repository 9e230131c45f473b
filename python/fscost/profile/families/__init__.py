"""One module per family of file systems: what its mkfs is called, accepts and needs. Siblings
alike.

To add a family: write its module with the three names of `Family`, list it in FAMILIES, and give it
a file in `catalogue/`.
"""

from typing import Protocol

from fscost.profile.families import btrfs, exfat, ext, f2fs, jfs, nilfs2, ntfs3, reiserfs, vfat, xfs
from fscost.profile.flags import Flag, Grammar
from fscost.profile.model import FormatPlan, Profile


class Family(Protocol):
    """What every module here offers."""

    TYPES: tuple[str, ...]
    """The mount types it knows."""

    def grammar(self, type_: str) -> Grammar:
        """The flags that the mkfs of this type takes."""
        ...

    def plan(self, profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
        """Every command that formats and inspects `profile` on a main disk of `main_bytes`;
        InputError if it cannot fit."""
        ...


FAMILIES: tuple[Family, ...] = (ext, xfs, btrfs, f2fs, jfs, nilfs2, reiserfs, ntfs3, exfat, vfat)

# Known to Linux, not to any lab of ours: mkfs program, for "needs …".
LATER: dict[str, str] = {"bcachefs": "bcachefs", "udf": "mkfs.udf"}


def family_of(type_: str) -> Family | None:
    """The module that formats this type, or None."""
    return next((family for family in FAMILIES if type_ in family.TYPES), None)


def formattable_types() -> list[str]:
    """Every type that some lab can format."""
    return sorted(type_ for family in FAMILIES for type_ in family.TYPES)


def known_types() -> list[str]:
    """Every type that can be spelled, formattable here or not."""
    return sorted({*LATER, *formattable_types()})
