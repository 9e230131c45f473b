"""reiserfs: mkfs.reiserfs."""

from fscost.profile.families.common import (
    MIB,
    format_plan,
    formats_nothing,
    join_options,
    require_size,
    seeded_uuid,
)
from fscost.profile.flags import Flag, Grammar, suboptions, values_of, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("reiserfs",)

# reiserfsprogs mkreiserfs/mkreiserfs.c, main(). Its `-o` is spelled `--journal-offset` here,
# because `-o` in a profile means mount options.
_SHORT = "b:j:s:t:o:h:u:l:VfdB:q"
_LONG = (
    "badblocks= block-size= format= hash= journal-device= journal-offset= journal-size= label="
    " transaction-max-size= uuid= debug force quiet"
)
_HOST_FILE = "drop it: its file would be on the host"
_REFUSED = {
    **formats_nothing("mkfs.reiserfs", "-V"),
    "-B": _HOST_FILE,
    "--badblocks": _HOST_FILE,
}
_JOURNAL = ("-j", "--journal-device")

_MINIMUM_BYTES = 33 * MIB  # "cannot create a journal of 8193 blocks with 18 offset on 8192 blocks"


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.reiserfs."""
    return Grammar(
        f"mkfs.{type_}",
        _SHORT,
        tuple(_LONG.split()),
        refused=_REFUSED,
        device_flags=frozenset(_JOURNAL),
    )


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs, which also formats an external journal (`-j {disk.NAME}`). The mount names the
    journal again, because the superblock holds only its device number."""
    journals = values_of(flags, *_JOURNAL)
    if not journals and not values_of(flags, "-s", "--journal-size", "-b", "--block-size"):
        require_size(profile, main_bytes, _MINIMUM_BYTES, "its journal takes 32 MiB")
    # -f once: accept a whole disk; twice: ask no question.
    ours: list[Flag] = [("-q", ""), ("-f", ""), ("-f", "")]
    if not values_of(flags, "-u", "--uuid"):
        ours.append(("-u", seeded_uuid(seed, "file system")))
    mounted = {key for key, _ in suboptions(profile.mount_options)}
    named = [f"jdev={journal}" for journal in journals[-1:] if "jdev" not in mounted]
    return format_plan(
        profile,
        ("mkfs.reiserfs", *words_of(ours), *words_of(flags), "{disk.main}"),
        superblock=("debugreiserfs", "{disk.main}"),
        mount_options=join_options(profile.mount_options, *named),
    )
