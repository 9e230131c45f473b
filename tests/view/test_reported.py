"""Mount options that the kernel accepts and ignores are found, for the file systems of this
host."""

import os
import subprocess
from pathlib import Path

import pytest

from fscost.view.reported import unreported

# Prints, for each set of options in $OPTIONS, the mount's own and the super block's options.
SCRIPT = """
set -eu
cd "$FOLDER"; mkdir mnt
truncate -s 320M disk
$MKFS disk >/dev/null 2>&1
for options in $OPTIONS; do
    mount -i -t $TYPE -o loop,$options disk mnt
    awk -v dir="$FOLDER/mnt" '$5 == dir { print $6 "," $NF }' /proc/self/mountinfo | tail -n 1
    umount mnt
done
"""
MKFS = {
    "ext2": "mkfs.ext2 -q",
    "ext3": "mkfs.ext3 -q",
    "ext4": "mkfs.ext4 -q",
    "xfs": "mkfs.xfs -q",
    "btrfs": "mkfs.btrfs -q",
}
ACTING = {
    "ext2": ("noatime,nodiratime", "lazytime,sync", "errors=remount-ro,grpid,resuid=5,barrier=0"),
    "ext3": ("data=writeback,barrier=0", "data=journal,commit=60", "data=ordered,commit=5"),
    "ext4": (
        "noatime,lazytime,commit=30,noauto_da_alloc",
        "data=journal,barrier=0",
        "noload,ro",
        "bsdgroups,dioread_lock,no_mbcache,auto_da_alloc=0,nodelalloc,stripe=16",
        "journal_ioprio=3,mb_optimize_scan=0,init_itable,iversion,barrier,discard",
        "strictatime,min_batch_time=0,max_batch_time=5,inode_readahead_blks=64,noinit_itable",
    ),
    "xfs": (
        "allocsize=16m,logbufs=4,logbsize=256k,noatime",
        "bsdgroups,inode32,largeio,swalloc,wsync,filestreams",
        "nodiscard,nogrpid,nolargeio,lazytime,nouuid",
    ),
    "btrfs": (
        "compress,commit=60,noatime,thread_pool=4",
        "compress-force=zstd,max_inline=4k,discard=sync",
        "nodatacow,flushoncommit,notreelog,metadata_ratio=4",
        "compress=zlib:9,ssd_spread,subvolid=0,acl,barrier",
        "compress=none,space_cache=v2,autodefrag,nodiscard",
    ),
}
"""Options that act, or equal a default: one mount for each text."""
IGNORED = {
    "ext2": {"orlov": ["orlov"], "noatime,nobh": ["nobh"]},
    "ext3": {"reservation": ["reservation"]},
    "ext4": {
        "nomblk_io_submit,commit=30": ["nomblk_io_submit"],
        "i_version,oldalloc": ["i_version", "oldalloc"],
    },
    "xfs": {"dax": ["dax"]},
    "btrfs": {"compress=zstd,nodatacow": ["compress=zstd"]},
}
"""Options of which some are ignored: removed ones, DAX on a disk without it, and compression, which
a later nodatacow turns off."""


@pytest.mark.root
@pytest.mark.parametrize("type_", MKFS)
def test_only_options_without_effect_are_found(tmp_path: Path, type_: str) -> None:
    expected = {options: list[str]() for options in ACTING[type_]} | IGNORED[type_]
    variables = {"FOLDER": str(tmp_path), "OPTIONS": " ".join(expected)}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT],
        env={**os.environ, **variables, "TYPE": type_, "MKFS": MKFS[type_]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    found = {
        options: unreported(type_, options, line)
        for options, line in zip(expected, lines, strict=True)
    }
    assert found == expected, lines


def test_f2fs_without_the_feature_ignores_compression() -> None:
    listed = "rw,lazytime,relatime,rw,background_gc=on,user_xattr,acl,inline_data,mode=adaptive"
    assert unreported("f2fs", "compress_algorithm=zstd,acl", listed) == ["compress_algorithm=zstd"]
    assert not unreported("f2fs", "compress_algorithm=zstd", f"{listed},compress_algorithm=zstd:3")


def test_a_family_without_a_table_is_not_judged() -> None:
    assert unreported("vfat", "quiet,tz=UTC", "rw") == []
