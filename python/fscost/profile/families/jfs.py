"""jfs: mkfs.jfs."""

from fscost.profile.families.common import MIB, format_plan, require_size
from fscost.profile.flags import Flag, Grammar, suboptions, values_of, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("jfs",)

# jfsutils mkfs/mkfs.c, main(): the getopt string.
_SHORT = "cj:J:fL:Oqs:V"
_REFUSED = {"-V": "with it mkfs.jfs makes no file system"}

_MINIMUM_BYTES = 16 * MIB  # mkfs.jfs: "Partition must be at least 16 megabytes."


def grammar(type_: str) -> Grammar:
    """mkfs.jfs."""
    return Grammar(
        f"mkfs.{type_}",
        _SHORT,
        refused=_REFUSED,
        device_keys={"-J": frozenset({"device"})},
        device_flags=frozenset({"-j"}),
    )


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """One mkfs; before it the external journal if `-J device={disk.NAME}` asks for one (`-j` makes
    its own).

    mkfs.jfs takes no UUID. The superblock names the journal's device and UUID (fs/jfs/jfs_logmgr.c,
    lmLogOpen()): the mount needs no option.
    """
    del seed
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.jfs refuses less")
    journals = [
        given
        for value in values_of(flags, "-J")
        for key, given in suboptions(value)
        if key == "device"
    ]
    made_first = [("mkfs.jfs", "-q", "-J", "journal_dev", journal) for journal in journals[-1:]]
    main = ("mkfs.jfs", "-q", *words_of(flags), "{disk.main}")
    return format_plan(profile, *made_first, main, superblock=("jfs_tune", "-l", "{disk.main}"))
