"""btrfs: mkfs.btrfs."""

from fscost.profile.families.common import (
    MIB,
    format_plan,
    formats_nothing,
    join_options,
    require_size,
)
from fscost.profile.flags import Flag, Grammar, suboptions, words_of
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("btrfs",)

# btrfs-progs mkfs/main.c: the getopt string and its long options, including those of later
# versions: mkfs itself reports unknown ones.
_SHORT = "A:b:fhl:n:s:m:d:L:O:R:r:U:VvMKq"
_LONG = (
    "alloc-start= byte-count= checksum= compress= csum= data= device-uuid= features= force help"
    " inode-flags= label= leafsize= metadata= mixed nodesize= nodiscard param= quiet reflink"
    " rootdir= runtime-features= sectorsize= shrink subvol= uuid= verbose version"
)
_REFUSED = formats_nothing("mkfs.btrfs", "-h", "--help", "-V", "--version")

# Minimum that mkfs.btrfs reports for its default, metadata DUP ("minimum size for each btrfs device
# is 114294784"); less for single and mixed.
_MINIMUM_BYTES = 109 * MIB


def grammar(type_: str) -> Grammar:
    """Flags of mkfs.btrfs."""
    return Grammar(f"mkfs.{type_}", _SHORT, tuple(_LONG.split()), refused=_REFUSED)


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs over all disks of the profile.

    Unlike in other families, the UUID stays random. The kernel remembers the devices of a btrfs
    after its unmount (always if it has several disks, and for a single disk if udev scans it). It
    then mistakes a second file system with the same UUID on other loop devices for additional
    members of the first, and the mount fails with EEXIST (fs/btrfs/volumes.c, device_list_add();
    seen on Linux 6.18). Nothing else depends on the UUID.
    """
    if not any(flag in ("-m", "--metadata", "-M", "--mixed") for flag, _ in flags):
        require_size(profile, main_bytes, _MINIMUM_BYTES, "its metadata is stored twice")
    disks = tuple(f"{{disk.{disk.name}}}" for disk in profile.disks)
    return format_plan(
        profile,
        ("mkfs.btrfs", "-f", "-q", *words_of(flags), *disks),
        superblock=("btrfs", "inspect-internal", "dump-super", "{disk.main}"),
        mount_options=join_options(profile.mount_options, *_member_options(profile, disks)),
        sync_tracepoints=("btrfs/btrfs_sync_file",),
    )


def _member_options(profile: Profile, disks: tuple[str, ...]) -> list[str]:
    """Return `device=` options for the other disks, so that the kernel finds them without a scan by
    udev (btrfs(5))."""
    mounted = [value for key, value in suboptions(profile.mount_options) if key == "device"]
    return [f"device={disk}" for disk in disks[1:] if disk not in mounted]
