"""jfs: mkfs.jfs."""

from fscost.profile.families.common import MIB, format_plan, formats_nothing, require_size
from fscost.profile.flags import Flag, Grammar, suboption_values, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("jfs",)

# jfsutils mkfs/mkfs.c, main(): the getopt string.
_SHORT = "cj:J:fL:Oqs:V"
_REFUSED = formats_nothing("mkfs.jfs", "-V")

_MINIMUM_BYTES = 16 * MIB  # mkfs.jfs: "Partition must be at least 16 megabytes."


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.jfs."""
    return Grammar(
        f"mkfs.{type_}",
        _SHORT,
        refused=_REFUSED,
        device_keys={"-J": frozenset({"device"})},
        device_flags=frozenset({"-j"}),
    )


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs, preceded by that of the external journal if `-J device={disk.NAME}` requests
    one (`-j` makes its own).

    mkfs.jfs has no option for the UUID. The superblock holds the journal's device and UUID
    (fs/jfs/jfs_logmgr.c, lmLogOpen()), so the mount needs no option.
    """
    del seed
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.jfs refuses it")
    journals = suboption_values(flags, "-J", "device")
    made_first = [("mkfs.jfs", "-q", "-J", "journal_dev", journal) for journal in journals[-1:]]
    main = ("mkfs.jfs", "-q", *words_of(flags), "{disk.main}")
    return format_plan(profile, *made_first, main, superblock=("jfs_tune", "-l", "{disk.main}"))
