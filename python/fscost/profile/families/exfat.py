"""exfat: mkfs.exfat of exfatprogs."""

from fscost.profile.families.common import MIB, format_plan, formats_nothing, require_size
from fscost.profile.flags import Flag, Grammar, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("exfat",)

# exfatprogs mkfs/mkfs.c: the getopt string and its long options.
_SHORT = "n:L:c:b:fVvh"
_LONG = "boundary-align= cluster-size= full-format help pack-bitmap verbose version volume-label="
_REFUSED = formats_nothing("mkfs.exfat", "-h", "--help", "-V", "--version")

_MINIMUM_BYTES = 4 * MIB  # on 2 MiB: "exFAT format fail!"


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.exfat."""
    return Grammar(f"mkfs.{type_}", _SHORT, tuple(_LONG.split()), refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one quick mkfs. The volume's serial number comes from the time, because mkfs.exfat has
    no option for it.

    dump.exfat cannot inspect a mounted disk, which it tries to open exclusively. The value that
    matters is the cluster size, which statfs returns as the block size.
    """
    del seed
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.exfat refuses it")
    mkfs = ("mkfs.exfat", *words_of(flags), "{disk.main}")
    return format_plan(profile, mkfs, superblock=("stat", "--file-system", "{dir}"))
