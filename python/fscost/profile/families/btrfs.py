"""btrfs: mkfs.btrfs."""

from fscost.profile.families.common import MIB, format_plan, join_options, require_size
from fscost.profile.flags import Flag, Grammar, suboptions, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("btrfs",)

# btrfs-progs mkfs/main.c: the getopt string and its long options (those of later versions too: mkfs
# says what it does not know).
_SHORT = "A:b:fhl:n:s:m:d:L:O:R:r:U:VvMKq"
_LONG = (
    "alloc-start= byte-count= checksum= compress= csum= data= device-uuid= features= force help inode-flags= label= "
    "leafsize= metadata= mixed nodesize= nodiscard param= quiet reflink rootdir= runtime-features= sectorsize= shrink "
    "subvol= uuid= verbose version"
)
_FORMATS_NOTHING = "with it mkfs.btrfs makes no file system"
_REFUSED = {
    "-h": _FORMATS_NOTHING,
    "--help": _FORMATS_NOTHING,
    "-V": _FORMATS_NOTHING,
    "--version": _FORMATS_NOTHING,
}

# What mkfs.btrfs says for its default, metadata DUP ("minimum size for each btrfs device is
# 114294784"); less for single and mixed.
_MINIMUM_BYTES = 109 * MIB


def grammar(type_: str) -> Grammar:
    """mkfs.btrfs."""
    return Grammar(f"mkfs.{type_}", _SHORT, tuple(_LONG.split()), refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """One mkfs over all disks of the profile.

    The UUID stays random, other than in the sibling families. The kernel remembers the devices of a
    btrfs after its unmount (of several disks always,
    of one when udev scans it); a second file system with that UUID on other loop devices is then
    taken for more members of the
    first, and its mount fails with EEXIST (fs/btrfs/volumes.c, device_list_add()). Met on 6.18;
    nothing else depends on the UUID.
    """
    if not any(flag in ("-m", "--metadata", "-M", "--mixed") for flag, _ in flags):
        require_size(
            profile, main_bytes, _MINIMUM_BYTES, "mkfs.btrfs needs that for metadata in two copies"
        )
    ours: list[Flag] = [("-f", ""), ("-q", "")]
    disks = tuple(f"{{disk.{disk.name}}}" for disk in profile.disks)
    return format_plan(
        profile,
        ("mkfs.btrfs", *words_of(ours), *words_of(flags), *disks),
        superblock=("btrfs", "inspect-internal", "dump-super", "{disk.main}"),
        mount_options=join_options(profile.mount_options, *_member_options(profile, disks)),
        sync_tracepoints=("btrfs/btrfs_sync_file",),
    )


def _member_options(profile: Profile, disks: tuple[str, ...]) -> list[str]:
    """`device=` for the other disks: the kernel finds them without a scan by udev (btrfs(5))."""
    mounted = [value for key, value in suboptions(profile.mount_options) if key == "device"]
    return [f"device={disk}" for disk in disks[1:] if disk not in mounted]
