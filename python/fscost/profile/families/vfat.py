"""vfat: FAT with long names, mkfs.vfat of dosfstools."""

from fscost.profile.families.common import (
    MIB,
    format_plan,
    formats_nothing,
    require_size,
    seeded_uuid,
)
from fscost.profile.flags import Flag, Grammar, values_of, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("vfat",)

# dosfstools src/mkfs.fat.c, main(): the getopt string and its long options.
_SHORT = "aAb:cCf:D:F:g:Ii:l:m:M:n:r:R:s:S:h:v"
_LONG = "codepage= help invariant mbr= offset= variant="
_HOST_FILE = "drop it: its file would be on the host"
_REFUSED = {
    "-C": _HOST_FILE,
    "-l": _HOST_FILE,
    "-m": _HOST_FILE,
    **formats_nothing("mkfs.vfat", "--help"),
    "--offset": "drop it: the file system begins where the disk begins",
}

_MINIMUM_BYTES = 1 * MIB  # smaller disks are floppies


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.vfat."""
    return Grammar(f"mkfs.{type_}", _SHORT, tuple(_LONG.split()), refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs on the whole disk. mkfs.vfat chooses 12, 16 or 32 bits by the disk's size; the
    volume number comes from the seed."""
    require_size(profile, main_bytes, _MINIMUM_BYTES, "disks of this size are floppies")
    ours: list[Flag] = [("-I", "")]  # allow a disk without partitions
    if not values_of(flags, "-i", "--invariant"):
        ours.append(("-i", seeded_uuid(seed, "file system")[:8]))
    mkfs = ("mkfs.vfat", *words_of(ours), *words_of(flags), "{disk.main}")
    return format_plan(profile, mkfs, superblock=("fsck.fat", "-n", "-v", "{disk.main}"))
