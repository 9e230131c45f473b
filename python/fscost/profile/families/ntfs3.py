"""ntfs3, the kernel's own NTFS driver: mkfs.ntfs."""

from fscost.profile.families.common import MIB, format_plan, require_size
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
_FORMATS_NOTHING = "drop it: with it, mkfs.ntfs makes no file system"
_REFUSED = dict.fromkeys(
    ("-h", "--help", "-l", "--license", "-n", "--no-action", "-V", "--version"), _FORMATS_NOTHING
)

_MINIMUM_BYTES = (
    2 * MIB
)  # mkfs.ntfs: "Minimum NTFS volume size is 1MiB", and it counts one sector less than the disk has


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.ntfs."""
    del type_
    return Grammar("mkfs.ntfs", _SHORT, tuple(_LONG.split()), refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one quick mkfs: the full one writes every sector of the disk. The serial number is
    random, because mkfs.ntfs has no option for it."""
    del seed
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.ntfs refuses it")
    ours: list[Flag] = [("-Q", ""), ("-q", ""), ("-F", "")]  # -F: a whole disk, not a partition
    return format_plan(
        profile,
        ("mkfs.ntfs", *words_of(ours), *words_of(flags), "{disk.main}"),
        superblock=("ntfsinfo", "-m", "-f", "{disk.main}"),
    )
