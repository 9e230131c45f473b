"""Suggestions for words that mkfs or the kernel rejected. mkfs and the kernel alone decide what is
valid: these lists never cause a rejection."""

from fscost.errors import did_you_mean
from fscost.profile.flags import suboptions
from fscost.profile.model import Profile

# From mount(8) and the man pages of each file system: the options that users compare.
_OPTIONS: dict[str, str] = {
    "": "noatime relatime strictatime lazytime nodiratime sync dirsync ro nodev nosuid noexec",
    "ext": (
        "data barrier nobarrier commit journal_checksum journal_async_commit delalloc nodelalloc"
        " discard nodiscard auto_da_alloc noauto_da_alloc journal_ioprio inode_readahead_blks"
        " stripe dioread_lock dioread_nolock nombcache norecovery noload errors user_xattr acl"
        " quota"
    ),
    "xfs": (
        "logbsize logbufs allocsize discard nodiscard inode32 inode64 largeio noalign norecovery"
        " nouuid sunit swidth swalloc wsync attr2 quota prjquota"
    ),
    "btrfs": (
        "compress compress-force datacow nodatacow datasum nodatasum commit discard nodiscard ssd"
        " nossd ssd_spread space_cache flushoncommit notreelog treelog max_inline metadata_ratio"
        " thread_pool autodefrag noautodefrag barrier nobarrier subvol"
    ),
}
_VALUES: dict[str, dict[str, str]] = {
    "ext": {"data": "journal ordered writeback", "errors": "continue remount-ro panic"},
    "btrfs": {"compress": "zlib lzo zstd none", "discard": "sync async", "space_cache": "v1 v2"},
}
# From ext4(5).
_FEATURES = (
    "64bit bigalloc casefold dir_index dir_nlink ea_inode encrypt extent extra_isize fast_commit"
    " filetype flex_bg has_journal huge_file inline_data large_dir large_file metadata_csum"
    " metadata_csum_seed meta_bg mmp orphan_file project quota resize_inode sparse_super"
    " sparse_super2 uninit_bg verity"
)


def suggestion(profile: Profile, kind: str) -> str | None:
    """Suggest a correction for a profile that failed in `mkfs` or `mount`: a word, and the known
    word that it resembles."""
    family = "ext" if profile.type.startswith("ext") else profile.type
    if kind == "mount":
        given = (
            [key for key, _ in suboptions(profile.mount_options)] if profile.mount_options else []
        )
        known = f"{_OPTIONS['']} {_OPTIONS.get(family, '')}".split()
        if (remedy := _value(profile, _VALUES.get(family, {}))) is not None:
            return remedy
    elif kind == "mkfs" and family == "ext":
        flags = list(zip(profile.mkfs_flags, profile.mkfs_flags[1:], strict=False))
        given = [
            feature.lstrip("^")
            for flag, value in flags
            if flag == "-O"
            for feature in value.split(",")
        ]
        known = _FEATURES.split()
    else:
        return None
    close = [(word, did_you_mean(word, known)) for word in given if word not in known]
    return next((f"{word!r}: {remedy}" for word, remedy in close if remedy is not None), None)


def _value(profile: Profile, known: dict[str, str]) -> str | None:
    """Suggest a correction for a value of a mount option."""
    for key, value in suboptions(profile.mount_options) if profile.mount_options else []:
        values = known.get(key, "").split()
        word = value.partition(":")[0]
        if values and word and word not in values:
            remedy = did_you_mean(word, values)
            if remedy is not None:
                return f"{word!r}: {remedy}"
    return None
