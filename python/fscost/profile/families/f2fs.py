"""f2fs: mkfs.f2fs."""

from fscost.profile.families.common import (
    MIB,
    format_plan,
    formats_nothing,
    require_size,
    seeded_uuid,
)
from fscost.profile.flags import Flag, Grammar, values_of, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("f2fs",)

# f2fs-tools mkfs/f2fs_format_main.c, f2fs_parse_options(). Its `-o`, the over-provisioning ratio,
# is unavailable, because `-o` in a profile means mount options.
_SHORT = "qa:c:C:d:e:E:g:hil:mo:O:rR:s:S:z:t:T:U:Vfw:"
_REFUSED = formats_nothing("mkfs.f2fs", "-h", "-V")

# mkfs.f2fs fails on smaller disks ("device size is not sufficient"). Below 100 MiB, it reserves a
# third or more of the disk.
_MINIMUM_BYTES = 52 * MIB


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.f2fs."""
    return Grammar(f"mkfs.{type_}", _SHORT, refused=_REFUSED, device_flags=frozenset({"-c"}))


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs. It runs without `-q`, with which mkfs.f2fs fails without a message."""
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.f2fs refuses it")
    # -r: the checkpoint's first version is not a random number.
    ours: list[Flag] = [("-f", ""), ("-r", "")]
    if not values_of(flags, "-U"):
        ours.append(("-U", seeded_uuid(seed, "file system")))
    return format_plan(
        profile,
        ("mkfs.f2fs", *words_of(ours), *words_of(flags), "{disk.main}"),
        superblock=("dump.f2fs", "{disk.main}"),
        sync_tracepoints=("f2fs/f2fs_sync_file_enter",),
    )
