"""Which distribution package brings a program: for 'needs …, apt-get install …' in skips and in
`fscost doctor`."""

# Names are Debian's and Ubuntu's; other distributions mostly agree.
PACKAGES: dict[str, str] = {
    "mke2fs": "e2fsprogs",
    "mkfs.ext2": "e2fsprogs",
    "mkfs.ext3": "e2fsprogs",
    "mkfs.ext4": "e2fsprogs",
    "tune2fs": "e2fsprogs",
    "dumpe2fs": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "chattr": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "xfs_db": "xfsprogs",
    "xfs_io": "xfsprogs",
    "xfs_info": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "btrfs": "btrfs-progs",
    "mkfs.f2fs": "f2fs-tools",
    "dump.f2fs": "f2fs-tools",
    "mkfs.nilfs2": "nilfs-tools",
    "nilfs-tune": "nilfs-tools",
    "nilfs_cleanerd": "nilfs-tools",
    "mkfs.jfs": "jfsutils",
    "jfs_tune": "jfsutils",
    "mkfs.reiserfs": "reiserfsprogs",
    "debugreiserfs": "reiserfsprogs",
    "mkfs.ntfs": "ntfs-3g",
    "ntfsinfo": "ntfs-3g",
    "mkfs.exfat": "exfatprogs",
    "mkfs.vfat": "dosfstools",
    "fsck.fat": "dosfstools",
    "mdadm": "mdadm",
    "mkfs.udf": "udftools",
    "bcachefs": "bcachefs-tools",
    "fio": "fio",
    "sqlite3": "sqlite3",
    "git": "git",
    "gcc": "build-essential",
    "cc": "build-essential",
    "make": "build-essential",
    "tar": "tar",
    "unzip": "unzip",
    "xz": "xz-utils",
    "zstd": "zstd",
    "find": "findutils",
    "xargs": "findutils",
    "dd": "coreutils",
    "wc": "coreutils",
    "rm": "coreutils",
    "mkfifo": "coreutils",
    "shuf": "coreutils",
    "stat": "coreutils",
    "sh": "dash",
}


def package_of(tool: str) -> str:
    """The package that brings `tool`; the tool's own name when it is not in our table, which is
    right more often than not."""
    return PACKAGES.get(tool, tool)
