"""md arrays: `… on md -l 5 -n 3`, with mdadm's own flags. The members are disks of the cell
(`{disk.m0}` and so on); `{disk.main}` is the array."""

from collections.abc import Sequence
from dataclasses import replace

from fscost.errors import InputError
from fscost.profile.families.common import seeded_uuid
from fscost.profile.flags import Grammar, split_flags, values_of, words_of
from fscost.profile.model import Array, DiskSpec, FormatPlan, Profile

_DEVICE = "/dev/md0"
_WORDS = ("on", "md")
_LEVELS = {"linear": 2, "0": 2, "1": 2, "4": 3, "5": 3, "6": 4, "10": 2}
"""Minimum number of members by level."""
_MOST_MEMBERS = 16

# mdadm(8), create mode: options that shape an array. Spares, journals and bitmaps in files would be
# disks and files of the host.
_GRAMMAR = Grammar(
    "mdadm --create",
    "l:n:c:p:b:e:k:",
    (
        *("level=", "raid-devices=", "chunk=", "layout=", "bitmap=", "bitmap-chunk="),
        *("metadata=", "consistency-policy="),
    ),
)


def split_array(words: Sequence[str]) -> tuple[list[str], Array | None, list[str]]:
    """Split off the array: return the words before `on md`, the array that follows, if any, and the
    mount options after it."""
    places = [at for at in range(len(words)) if tuple(words[at : at + 2]) == _WORDS]
    if not places:
        return list(words), None, []
    flags, options = split_flags(_GRAMMAR, words[places[0] + 2 :])
    for bitmap in values_of(flags, "-b", "--bitmap"):
        if bitmap not in ("internal", "none"):
            raise InputError(
                f"md: --bitmap {bitmap} would be a file on the host",
                "write --bitmap internal or --bitmap none",
            )
    rest = [flag for flag in flags if flag[0] not in ("-l", "--level", "-n", "--raid-devices")]
    level = _one(
        [given.removeprefix("raid") for given in values_of(flags, "-l", "--level")], "level", "-l 5"
    )
    if level not in _LEVELS:
        raise InputError(f"md: no level {level}", f"there are {', '.join(_LEVELS)}")
    members = _one(values_of(flags, "-n", "--raid-devices"), "number of disks", "-n 3")
    if (
        not members.isascii()
        or not members.isdecimal()
        or not _LEVELS[level] <= int(members[:3]) <= _MOST_MEMBERS
    ):
        raise InputError(
            f"md: level {level} cannot have {members} disks",
            f"give {_LEVELS[level]} to {_MOST_MEMBERS} disks",
        )
    return list(words[: places[0]]), Array(level, int(members), words_of(rest)), options


def member_disks(array: Array) -> tuple[DiskSpec, ...]:
    """Return the member disks, each of the size that the run requests."""
    return tuple(DiskSpec(f"m{number}") for number in range(array.members))


def without_array(profile: Profile) -> Profile:
    """Return the profile as its mkfs sees it: the array is the main disk."""
    if profile.array is None:
        return profile
    others = profile.disks[profile.array.members :]
    return replace(profile, array=None, disks=(DiskSpec(), *others))


def on_array(plan: FormatPlan, array: Array, seed: int) -> FormatPlan:
    """Move the plan of a file system from `{disk.main}` to an array.

    The disks are new and all zeroes, so their parity is correct. `--assume-clean` is therefore
    accurate, and no resync writes after the mount.
    """
    uuid = seeded_uuid(seed, "array").replace("-", "")
    create = (
        *("mdadm", "--create", _DEVICE, "--run", "--quiet", "--assume-clean"),
        *(f"--level={array.level}", f"--raid-devices={array.members}"),
        *("--homehost=fscost", "--name=fscost", f"--uuid={uuid}"),
        *array.flags,
        *(f"{{disk.{disk.name}}}" for disk in member_disks(array)),
    )

    def moved(command: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word.replace("{disk.main}", _DEVICE) for word in command)

    return replace(
        plan,
        mkfs=(create, *map(moved, plan.mkfs)),
        mount_device=_DEVICE,
        mount_options=plan.mount_options.replace("{disk.main}", _DEVICE),
        after_mount=tuple(map(moved, plan.after_mount)),
        background=tuple(map(moved, plan.background)),
        after_unmount=(("mdadm", "--stop", "--quiet", _DEVICE),),
        inspect=(
            *((name, moved(command)) for name, command in plan.inspect),
            ("array", ("mdadm", "--detail", _DEVICE)),
        ),
        needs_tools=tuple(dict.fromkeys(("mdadm", *plan.needs_tools))),
    )


def _one(given: Sequence[str], what: str, example: str) -> str:
    if len(given) != 1:
        raise InputError(
            f"md: {'no' if not given else 'more than one'} {what}",
            f"write it once, as in 'ext4 on md -l 5 -n 3' ({example})",
        )
    return given[0]
