"""Spelling of a profile: the type or a name of the catalogue, mkfs flags, `-o` with mount options,
and `on md` with mdadm flags."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from fscost.errors import InputError
from fscost.profile.array import member_disks, split_array
from fscost.profile.disks import split_disks, with_disks
from fscost.profile.families import family_of
from fscost.profile.flags import DISK_PLACEHOLDER, check_device_value, split_flags, words_of
from fscost.profile.model import DiskSpec, Profile

JOURNAL_BYTES = (
    256 << 20
)  # default size of a second disk; plenty for any journal, and quickly zeroed by mkfs.xfs

_LONGEST = 1000  # characters; a profile is the name of a row in every table

_DEVICE_OPTIONS = frozenset({"device", "jdev", "journal_dev", "journal_path", "logdev", "rtdev"})

# The kernel honours one option of each set, not always the last (mount(2): strictatime overrides
# noatime), so an extension replaces the option of its base.
_EXCLUSIVE = (
    frozenset({"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime"}),
    frozenset({"lazytime", "nolazytime"}),
)


def split_words(text: str) -> list[str]:
    """Split a profile into words as a shell would; InputError if a shell would reject the text."""
    if unprintable := next((c for c in text if not c.isprintable() and c != "\t"), None):
        is_byte = 0xDC80 <= ord(unprintable) <= 0xDCFF  # os.fsdecode()
        what = (
            f"the byte 0x{ord(unprintable) - 0xDC00:02x}, which is not UTF-8"
            if is_byte
            else repr(unprintable)
        )
        raise InputError(f"profile: contains {what}", "a profile is one line of text")
    if len(text) > _LONGEST:
        raise InputError(
            f"profile '{text[:40]}…': {len(text):,} characters",
            f"a profile has at most {_LONGEST:,}",
        )
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"profile '{text}': {str(error).lower()}", "close the quotes") from None
    if not words:
        raise InputError(
            "profile: empty",
            "write a type with flags, as 'ext4 -o noatime', or a name that `fscost profiles` lists",
        )
    return words


def extend(base: Profile, name: str, words: Sequence[str]) -> Profile:
    """Add flags and mount options to `base`, and name the result `name`."""
    family = family_of(base.type)
    if family is None:
        return replace(base, name=name, mkfs_flags=(*base.mkfs_flags, *words))
    words, disks = split_disks(words)
    words, array, last_options = split_array(words)
    flags, options = split_flags(family.grammar(base.type), words)
    added = ",".join(options + last_options)
    check_mount_options(added)
    profile = replace(
        base,
        name=name,
        summary="",  # the base's summary no longer applies
        refused="",
        mkfs_flags=base.mkfs_flags + words_of(flags),
        mount_options=merge_mount_options(base.mount_options, added),
    )
    if array is not None:
        former = 1 if base.array is None else base.array.members
        profile = replace(
            profile, array=array, disks=(*member_disks(array), *profile.disks[former:])
        )
    return with_disks(replace(profile, disks=_with_mentioned_disks(profile)), disks)


def check_mount_options(options: str) -> None:
    """Refuse empty items, whitespace, and devices that are not the cell's."""
    if not options:
        return
    for item in options.split(","):
        key, _, value = item.partition("=")
        if not key:
            raise InputError(
                f"-o '{options}': a mount option has no name",
                "separate mount options by one comma, as in -o noatime,commit=30",
            )
        if any(c.isspace() for c in item):
            raise InputError(
                f"-o '{options}': a mount option contains a space",
                "separate mount options by commas, as in -o noatime,commit=30",
            )
        if key == "loop":
            raise InputError(
                "-o loop: the disks of a profile are block devices already", "leave it out"
            )
        if key in _DEVICE_OPTIONS:
            check_device_value(f"-o {key}", value)


def merge_mount_options(base: str, added: str) -> str:
    """Merge both lists. Words of `base` that conflict with one of `added` are dropped."""
    new = added.split(",") if added else []
    overridden = {word for group in _EXCLUSIVE if group & set(new) for word in group}
    kept = [item for item in base.split(",") if item and item not in overridden]
    return ",".join([*kept, *new])


def _with_mentioned_disks(profile: Profile) -> tuple[DiskSpec, ...]:
    """Return the profile's disks, and one more for each other `{disk.NAME}` in its flags or
    options."""
    known = {disk.name for disk in profile.disks} | {"main"}
    text = " ".join((*profile.mkfs_flags, profile.mount_options))
    mentioned = dict.fromkeys(DISK_PLACEHOLDER.findall(text))
    return (
        *profile.disks,
        *(DiskSpec(name, JOURNAL_BYTES) for name in mentioned if name not in known),
    )
