"""xfs: mkfs.xfs."""

import re

from fscost.profile.families.common import (
    MIB,
    format_plan,
    formats_nothing,
    join_options,
    require_size,
)
from fscost.profile.flags import Flag, Grammar, suboption_values, suboptions, values_of, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("xfs",)

# xfsprogs mkfs/xfs_mkfs.c, main(): the getopt string.
_SHORT = "b:c:d:i:l:L:m:n:KNp:qr:s:CfV"
_REFUSED = {
    **formats_nothing("mkfs.xfs", "-N", "-V"),
    "-c": "drop it, and write the options into the profile: its file could name a real device",
}
_DEVICE_KEYS = {
    "-d": frozenset({"name", "file"}),
    "-l": frozenset({"logdev", "file", "name"}),
    "-r": frozenset({"rtdev", "file", "name"}),
}
_MINIMUM_BYTES = 300 * MIB  # mkfs.xfs(8), -d size


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.xfs."""
    return Grammar(f"mkfs.{type_}", _SHORT, refused=_REFUSED, device_keys=_DEVICE_KEYS)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs. The mount names an external log again, because xfs does not remember it
    (admin-guide/xfs.rst, logdev).

    The UUID stays random: xfs refuses to mount a second file system with the UUID of a mounted one,
    such as one of a concurrent run (fs/xfs/xfs_mount.c, xfs_uuid_mount()). No measurement depends
    on it.
    """
    require_size(profile, main_bytes, _MINIMUM_BYTES, "mkfs.xfs(8)")
    ours: list[Flag] = [("-f", ""), ("-q", ""), *_sector_flags(profile, flags)]
    return format_plan(
        profile,
        ("mkfs.xfs", *words_of(ours), *words_of(flags), "{disk.main}"),
        superblock=("xfs_db", "-r", "-c", "sb 0", "-c", "p", "{disk.main}"),
        mount_options=join_options(profile.mount_options, *_device_options(profile, flags)),
        sync_tracepoints=("xfs/xfs_file_fsync", "xfs/xfs_dir_fsync"),
    )


def _sector_flags(profile: Profile, flags: list[Flag]) -> list[Flag]:
    """Return the sector size that mkfs.xfs would choose on the disk that the recorded disk
    represents.

    mkfs.xfs takes the *physical* sector size, or the logical one if the block size is smaller
    (xfsprogs mkfs/xfs_mkfs.c, validate_sectorsize()). A loop device always reports its logical
    sector size as its physical one, so the flag sets it explicitly.
    """
    main = profile.disks[0]
    is_chosen = values_of(flags, "-s") or any(
        suboption_values(flags, flag, "sectsize") for flag in ("-d", "-l")
    )
    logical, physical = main.logical_block_bytes, main.physical_block_bytes
    if is_chosen or physical <= logical or _block_bytes(flags) < physical:
        return []
    return [("-s", f"size={physical}")]


def _block_bytes(flags: list[Flag]) -> int:
    """Return the requested block size. A value that cannot be parsed counts as small, which adds no
    flag."""
    sizes = suboption_values(flags, "-b", "size")
    if not sizes:
        return 4096
    match = re.fullmatch(r"(\d+)(k?)", sizes[-1])
    return int(match[1]) * (1024 if match[2] else 1) if match else 0


def _device_options(profile: Profile, flags: list[Flag]) -> list[str]:
    mounted = {key for key, _ in suboptions(profile.mount_options)}
    wanted = [
        (key, v) for _, value in flags for key, v in suboptions(value) if key in ("logdev", "rtdev")
    ]
    return [f"{key}={value}" for key, value in wanted if key not in mounted]
