"""Mount options that the kernel accepted but does not report: they may have had no effect.

The kernel lists a mount's options in /proc/self/mountinfo. It leaves out those that equal its
default, prints some under another name, and never prints a few. Each table below was compared with
Linux 6.18 by mounting (tests/view/test_reported.py); f2fs's follows fs/f2fs/super.c,
`f2fs_show_options`, which prints almost all options, also defaults.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# mount(8), and flags of mount(2) that mountinfo does not print or that undo another one.
_GENERIC = _set(
    "defaults auto noauto nofail nouser user users nogroup noowner _netdev silent loud atime"
    " diratime norelatime relatime strictatime nostrictatime nolazytime suid dev exec async nomand"
    " symfollow rw"
)
_USER_SPACE = ("x-", "X-", "comment=")
_SIZE = re.compile(r"(\d+)([kKmMgG]?)")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30}


@dataclass(frozen=True)
class _Family:
    """`aliases`: words printed under another name. `unseen`: words that equal the default, or act
    without being printed; a name stands for all its values."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()


# fs/ext4/super.c: `ext4_mount_opts` and `_ext4_show_options`. mb_optimize_scan and journal_ioprio
# are never printed.
_EXT = _Family(
    {
        "bsdgroups": "grpid",
        "barrier=0": "nobarrier",
        "noload": "norecovery",
        "auto_da_alloc=0": "noauto_da_alloc",
        "dioread_lock": "nodioread_nolock",
        "no_mbcache": "nombcache",
    },
    _set(
        "acl user_xattr bsddf nogrpid sysvgroups resuid=0 resgid=0 sb noquota barrier barrier=1"
        " commit=0 commit=5 journal_checksum data=ordered data_err=ignore errors=continue"
        " min_batch_time=0 max_batch_time=15000 journal_ioprio auto_da_alloc auto_da_alloc=1"
        " delalloc dioread_nolock block_validity iversion noiversion stripe=0"
        " inode_readahead_blks=32 nodiscard init_itable init_itable=10 max_dir_size_kb=0"
        " mb_optimize_scan prefetch_block_bitmaps"
    ),
)
_FAMILIES = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), _EXT),
    # fs/xfs/xfs_super.c: `xfs_fs_parameters` and `xfs_fs_show_options`.
    "xfs": _Family(
        {
            "bsdgroups": "grpid",
            "uquota": "usrquota",
            "quota": "usrquota",
            "gquota": "grpquota",
            "pquota": "prjquota",
            "qnoenforce": "uqnoenforce",
        },
        _set(
            "dax=inode nodiscard nogrpid sysvgroups nolargeio noikeep attr2 lifetime norecovery"
            " nouuid"
        ),
    ),
    # fs/btrfs/super.c: `btrfs_fs_parameters` and `btrfs_show_options`. The default of thread_pool
    # depends on the number of processors; clear_cache and usebackuproot act once, at the mount.
    "btrfs": _Family(
        {"discard=sync": "discard", "subvolid=0": "subvolid=5"},
        _set(
            "acl noautodefrag barrier clear_cache commit=30 compress=no compress=none"
            " compress-force=no compress-force=none datacow datasum nodiscard noenospc_debug"
            " fatal_errors=bug noflushoncommit max_inline=2048 metadata_ratio=0 nossd_spread"
            " thread_pool treelog usebackuproot device skip_balance"
        ),
    ),
    "f2fs": _Family(unseen=_set("checkpoint=enable noquota nodata_flush")),
}


def unreported(type_: str, options: str, reported: str) -> list[str]:
    """Return the words of `options` that are neither in `reported`, as mountinfo lists it, nor known
    to be left out there. A family without a table is not judged."""
    family = _FAMILIES.get(type_)
    if family is None:
        return []
    listed = set(_words(reported))
    return [word for word in _words(options) if not _is_accounted_for(word, family, listed)]


def _words(options: str) -> Iterator[str]:
    return (word.strip() for word in options.split(",") if word.strip())


def _is_accounted_for(word: str, family: _Family, listed: set[str]) -> bool:
    name, _, value = word.partition("=")
    if word in _GENERIC or word.startswith(_USER_SPACE) or {word, name} & family.unseen:
        return True
    printed = family.aliases.get(word, word)
    return printed in listed or any(
        _is_same(value, each.partition("=")[2]) for each in listed if each.partition("=")[0] == name
    )


def _is_same(value: str, printed: str) -> bool:
    """Compare a value with the one that the kernel prints, which may have another unit, or a level:
    zstd and zstd:3, 16m and 16384k. A word without a value is printed with its default one."""
    if not value:
        return printed != "never"
    return printed.startswith(f"{value}:") or _size(value) == _size(printed)


def _size(text: str) -> str | int:
    found = _SIZE.fullmatch(text)
    return text if found is None else int(found[1]) << _SHIFTS[found[2].lower()]
