"""ext2, ext3, ext4: mke2fs."""

import re
from pathlib import Path

from fscost.errors import InputError, did_you_mean
from fscost.profile.families.common import (
    MIB,
    format_plan,
    formats_nothing,
    require_size,
    seeded_uuid,
)
from fscost.profile.flags import (
    DISK_PLACEHOLDER,
    Flag,
    Grammar,
    suboption_values,
    values_of,
    words_of,
)
from fscost.profile.model import FormatPlan, Profile

TYPES: tuple[str, ...] = ("ext2", "ext3", "ext4")

# e2fsprogs misc/mke2fs.c, PRS(): the getopt string.
_SHORT = "b:ce:g:i:jl:m:nqr:s:t:d:vC:DE:FG:I:J:KL:M:N:O:R:ST:U:Vz:"
_REFUSED = {
    **formats_nothing("mke2fs", "-n", "-V", "-S"),
    "-t": "drop it: the type is the first word of the profile",
    "-z": "drop it: it writes a file on the host",
}

# Below 2048 blocks, mke2fs leaves out the journal and continues (lib/ext2fs/mkjournal.c,
# ext2fs_default_journal_size), so the profile would differ from its name. 8 MiB is that size with 4
# KiB blocks; on disks this small mke2fs uses 1 KiB blocks.
_MINIMUM_BYTES = 8 * MIB

_BLOCK_SIZES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
_LABEL_BYTES = 16  # struct ext4_super_block, s_volume_name
_CONFIGURATION = Path("/etc/mke2fs.conf")

# Lazy initialisation would write after the mount, for minutes, and be charged to the workload
# (mke2fs(8)).
_NOT_LAZY = "lazy_itable_init=0,lazy_journal_init=0"


def grammar(type_: str) -> Grammar:
    """Flags of mke2fs, called by the name that selects the type's defaults in /etc/mke2fs.conf."""
    return Grammar(
        f"mkfs.{type_}", _SHORT, refused=_REFUSED, device_keys={"-J": frozenset({"device"})}
    )


def plan(profile: Profile, flags: list[Flag], main_bytes: int, seed: int) -> FormatPlan:
    """Plan one mkfs, preceded by that of the external journal if `-J device={disk.NAME}` requests
    one."""
    _refuse_what_mke2fs_changes(profile, flags)
    journal = _journal_disk(flags)
    if journal is None and _has_journal(profile.type, flags):
        require_size(
            profile,
            main_bytes,
            _MINIMUM_BYTES,
            "it has no room for a journal; to do without one, add -O ^has_journal",
        )
    mkfs = [_mkfs(profile, flags, journal is not None, seed)]
    if journal is not None:
        mkfs.insert(0, _mkfs_journal(profile, flags, journal, seed))
    return format_plan(
        profile,
        *mkfs,
        superblock=("dumpe2fs", "-h", "{disk.main}"),
        sync_tracepoints=("ext4/ext4_sync_file_enter",),
    )


def _refuse_what_mke2fs_changes(profile: Profile, flags: list[Flag]) -> None:
    """Refuse flags that mke2fs only warns about and then changes: the profile would differ from its
    name (misc/mke2fs.c, PRS())."""
    for value in values_of(flags, "-b"):
        size = value.lstrip("-")
        if not size.isdecimal() or int(size[:9]) not in _BLOCK_SIZES:
            raise InputError(
                f"profile '{profile.name}': flags: -b {value} is not a block size",
                f"one of: {', '.join(map(str, _BLOCK_SIZES))}",
            )
    for value in values_of(flags, "-L"):
        if len(value.encode("utf-8", "surrogateescape")) > _LABEL_BYTES:
            raise InputError(
                f"profile '{profile.name}': flags: -L has more than {_LABEL_BYTES} bytes, and"
                " mke2fs would cut it",
                "give a shorter label",
            )
    known = _usage_types()
    for usage in (word for value in values_of(flags, "-T") for word in value.split(",")):
        if known and usage not in known:
            remedy = did_you_mean(usage, known) or f"one of: {', '.join(known)}"
            raise InputError(
                f"profile '{profile.name}': flags: -T {usage} is not in {_CONFIGURATION}", remedy
            )


def _usage_types() -> list[str]:
    """Return the usage types of the host's mke2fs.conf(5), which guests use too; empty if the file
    cannot be read."""
    try:
        text = _CONFIGURATION.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return re.findall(r"^\s+([\w-]+)\s*=\s*\{", text.partition("[fs_types]")[2], re.MULTILINE)


def _has_journal(type_: str, flags: list[Flag]) -> bool:
    """True if there is a journal. The last flag decides; ext3 and ext4 have one by default
    (mke2fs.conf(5))."""
    wanted = type_ != "ext2" or "-j" in [flag for flag, _ in flags]
    for value in values_of(flags, "-O"):
        for feature in value.split(","):
            if feature.lstrip("^") in ("has_journal", "none"):
                wanted = feature == "has_journal"
    return wanted


def _mkfs(
    profile: Profile, flags: list[Flag], external_journal: bool, seed: int
) -> tuple[str, ...]:
    ours: list[Flag] = [("-F", ""), ("-q", "")]
    if not values_of(flags, "-U"):
        ours.append(("-U", seeded_uuid(seed, "file system")))
    if external_journal and not values_of(flags, "-b"):
        ours.append(("-b", _block_bytes(flags)))
    # mke2fs honours only the last -E or -O (PRS(): `extended_opts = optarg`), so each becomes one
    # list. If a list repeats a key, the last value wins, so fscost's values come first. The hash
    # seed determines the order of directories. It is the same for all profiles of a repetition, so
    # that they do the same work.
    extended = ",".join(
        [_NOT_LAZY, f"hash_seed={seeded_uuid(seed, 'hash')}", *values_of(flags, "-E")]
    )
    ours.append(("-E", extended))
    if features := values_of(flags, "-O"):
        ours.append(("-O", ",".join(features)))
    theirs = [(flag, value) for flag, value in flags if flag not in ("-E", "-O")]
    return (f"mkfs.{profile.type}", *words_of(ours), *words_of(theirs), "{disk.main}")


def _mkfs_journal(profile: Profile, flags: list[Flag], journal: str, seed: int) -> tuple[str, ...]:
    # The journal's block size must be the file system's (mke2fs(8), -J device).
    plain = ("mke2fs", "-F", "-q", "-O", "journal_dev", "-b", _block_bytes(flags))
    return (*plain, "-U", seeded_uuid(seed, "journal"), journal)


def _block_bytes(flags: list[Flag]) -> str:
    return (values_of(flags, "-b") or ["4096"])[-1]


def _journal_disk(flags: list[Flag]) -> str | None:
    given = suboption_values(flags, "-J", "device")
    return given[-1] if given and DISK_PLACEHOLDER.fullmatch(given[-1]) else None
