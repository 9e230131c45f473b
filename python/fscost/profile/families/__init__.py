"""File system families, one module each, with the name, flags and requirements of its mkfs. All
modules have the same structure.

To add a family: write its module with the three names of `Family`, list it in FAMILIES, and give it
a file in `catalogue/`.
"""

from typing import Protocol

from fscost.profile.families import btrfs, exfat, ext, f2fs, jfs, nilfs2, ntfs3, reiserfs, vfat, xfs
from fscost.profile.flags import Flag, Grammar
from fscost.profile.model import FormatPlan, Profile


class Family(Protocol):
    """Interface of every module here."""

    TYPES: tuple[str, ...]
    """Mount types of the family."""

    def grammar(self, type_: str) -> Grammar:
        """Return the flags that this type's mkfs takes."""
        ...

    def plan(self, profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
        """Plan every command that formats and inspects `profile` on a main disk of `main_bytes`;
        InputError if it cannot fit."""
        ...


FAMILIES: tuple[Family, ...] = (ext, xfs, btrfs, f2fs, jfs, nilfs2, reiserfs, ntfs3, exfat, vfat)

# Types that Linux supports but no lab does yet, with their mkfs programs, for "needs …".
LATER: dict[str, str] = {"bcachefs": "bcachefs", "udf": "mkfs.udf"}

# File systems that fscost does not support: their names are no misspelt names of others.
UNSUPPORTED = ("apfs", "gfs2", "hfs", "hfsplus", "jffs2", "minix", "reiser4", "ubifs", "ufs", "zfs")


def family_of(type_: str) -> Family | None:
    """Return the module that formats this type, or None."""
    return next((family for family in FAMILIES if type_ in family.TYPES), None)


def formattable_types() -> list[str]:
    """Return every type that some lab can format."""
    return sorted(type_ for family in FAMILIES for type_ in family.TYPES)


def mkfs_programs() -> dict[str, str]:
    """Return the mkfs program of each type, in the order of FAMILIES."""
    return {type_: each.grammar(type_).program for each in FAMILIES for type_ in each.TYPES}


def known_types() -> list[str]:
    """Return every known type, whether or not a lab can format it."""
    return sorted({*LATER, *formattable_types()})
