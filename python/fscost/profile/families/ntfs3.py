"""ntfs3, the kernel's own NTFS driver: mkfs.ntfs."""

from fscost.profile.families.common import MIB, format_plan, formats_nothing, require_size
from fscost.profile.flags import Flag, Grammar, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("ntfs3",)

# ntfs-3g ntfsprogs/mkntfs.c, mkntfs_parse_options().
_SHORT = "c:CfFhH:IlL:np:qQs:S:TUvVz:"
_LONG = (
    "cluster-size= debug enable-compression fast force heads= help label= license"
    " mft-zone-multiplier= no-action no-indexing partition-start= quick quiet sector-size="
    " sectors-per-track= verbose version with-uuid zero-time"
)
_REFUSED = formats_nothing(
    "mkfs.ntfs", "-h", "--help", "-l", "--license", "-n", "--no-action", "-V", "--version"
)

# mkfs.ntfs: "Minimum NTFS volume size is 1MiB", and it counts one sector less than the disk has.
_MINIMUM_BYTES = 2 * MIB


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.ntfs."""
    del type_
    return Grammar("mkfs.ntfs", _SHORT, tuple(_LONG.split()), refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one quick mkfs: the full one writes every sector of the disk. The serial number is
    random, because mkfs.ntfs has no option for it."""
    del seed
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.ntfs refuses it")
    # -F: a whole disk, not a partition.
    mkfs = ("mkfs.ntfs", "-Q", "-q", "-F", *words_of(flags), "{disk.main}")
    return format_plan(profile, mkfs, superblock=("ntfsinfo", "-m", "-f", "{disk.main}"))
