"""nilfs2: mkfs.nilfs2."""

from fscost.profile.families.common import MIB, format_plan, formats_nothing, require_size
from fscost.profile.flags import Flag, Grammar, values_of, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("nilfs2",)

# nilfs-utils sbin/mkfs/mkfs.c, parse_options(): the getopt string.
_SHORT = "b:B:cfhKL:m:nqvO:P:V"
_REFUSED = formats_nothing("mkfs.nilfs2", "-n", "-h", "-V")

# mkfs.nilfs2: "required size=134221824 bytes", 16 segments of 8 MiB and a block.
_MINIMUM_BYTES = 129 * MIB


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.nilfs2."""
    return Grammar(f"mkfs.{type_}", _SHORT, refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs, which has no option for the UUID.

    The cleaner is a program that mount.nilfs2 starts. The agent calls mount(2) directly, so the
    cleaner runs only if a profile names it in `background`.
    """
    del seed
    if not values_of(flags, "-b", "-B"):
        require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.nilfs2 needs 16 segments of 8 MiB")
    mkfs = ("mkfs.nilfs2", "-f", "-q", *words_of(flags), "{disk.main}")
    return format_plan(profile, mkfs, superblock=("nilfs-tune", "-l", "{disk.main}"))
