"""Distribution packages that provide programs, for 'needs …, apt-get install …' in skips and in
`fscost doctor`."""

# Names are Debian's and Ubuntu's; other distributions mostly agree.
_TOOLS_OF = {
    "e2fsprogs": "mke2fs mkfs.ext2 mkfs.ext3 mkfs.ext4 tune2fs dumpe2fs debugfs chattr",
    "xfsprogs": "mkfs.xfs xfs_db xfs_io xfs_info",
    "btrfs-progs": "mkfs.btrfs btrfs",
    "f2fs-tools": "mkfs.f2fs dump.f2fs",
    "nilfs-tools": "mkfs.nilfs2 nilfs-tune nilfs_cleanerd",
    "jfsutils": "mkfs.jfs jfs_tune",
    "reiserfsprogs": "mkfs.reiserfs debugreiserfs",
    "ntfs-3g": "mkfs.ntfs ntfsinfo",
    "exfatprogs": "mkfs.exfat",
    "dosfstools": "mkfs.vfat fsck.fat",
    "mdadm": "mdadm",
    "qemu-system-x86": "qemu-system-x86_64",
    "udftools": "mkfs.udf",
    "fio": "fio",
    "sqlite3": "sqlite3",
    "postgresql": "pgbench",
    "util-linux": "setpriv unshare",
    "coreutils": "cat cp dd head mkfifo mv rm shuf sort split stat sync timeout wc",
    "git": "git",
    "build-essential": "gcc cc make",
    "tar": "tar",
    "unzip": "unzip",
    "xz-utils": "xz",
    "zstd": "zstd",
    "findutils": "find xargs",
    "dash": "sh",
    "dpkg": "dpkg dpkg-deb",
}
PACKAGES = {tool: package for package, tools in _TOOLS_OF.items() for tool in tools.split()}
"""Package of each program."""


def package_of(tool: str) -> str:
    """Return the package that provides `tool`. If the table does not list the tool, return its own
    name, which is usually right."""
    return PACKAGES.get(tool, tool)
