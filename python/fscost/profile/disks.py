"""Sizes and device models of a profile's disks: `--disk NAME=MODEL,size=SIZE`, as a word of the
profile or as an option for all profiles."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fscost.errors import InputError, did_you_mean
from fscost.profile.model import DiskSpec, Profile
from fscost.quantity import parse_size_bytes

FLAG = "--disk"
RAM = "ram"
_NAME = re.compile(r"[a-z][a-z0-9]*")
_EXAMPLE = "write it as --disk journal=sata-ssd,size=1906M"
BLOCK_BYTES = 4096
SMALLEST_BYTES, LARGEST_BYTES = 64 << 10, 1 << 40


@dataclass(frozen=True)
class DiskOption:
    """Options of one disk. An empty model and a size of 0 leave it unchanged."""

    name: str
    model: str
    size_bytes: int


def parse_disk(text: str) -> DiskOption:
    """Parse `NAME=MODEL`, `NAME=size=SIZE` or `NAME=MODEL,size=SIZE`."""
    name, equals, rest = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or not rest:
        raise InputError(f"{FLAG} {text}: not NAME=MODEL", _EXAMPLE)
    model, size_bytes = "", 0
    for number, item in enumerate(rest.split(",")):
        if item.startswith("size=") and not size_bytes:
            size_bytes = _size_bytes(text, item.removeprefix("size="))
        elif item and "=" not in item and number == 0:
            model = item
        else:
            raise InputError(f"{FLAG} {text}: {item!r} is neither a model nor size=SIZE", _EXAMPLE)
    return DiskOption(name, model, size_bytes)


def split_disks(words: Sequence[str]) -> tuple[list[str], list[DiskOption]]:
    """Split off the disk options: return the other words, and the options among them."""
    rest: list[str] = []
    options: list[DiskOption] = []
    remaining = iter(words)
    for word in remaining:
        flag, equals, value = word.partition("=")
        if flag != FLAG:
            rest.append(word)
            continue
        options.append(parse_disk(value if equals else next(remaining, "")))
    return rest, options


def with_disks(profile: Profile, options: Sequence[DiskOption]) -> Profile:
    """Apply options to a profile; it must have each option's disk."""
    disks = {disk.name: disk for disk in profile.disks}
    for option in options:
        if option.name not in disks:
            remedy = (
                did_you_mean(option.name, disks) or f"name one of its disks: {', '.join(disks)}"
            )
            raise InputError(f"{FLAG} {option.name}: the profile has no such disk", remedy)
        disks[option.name] = _changed(disks[option.name], option)
    return replace(profile, disks=tuple(disks.values()))


def with_run_disks(
    profiles: Sequence[Profile], options: Sequence[DiskOption]
) -> tuple[Profile, ...]:
    """Apply the options of a run. Each option applies to all profiles that have its disk; they must
    not name a different model themselves."""
    for option in options:
        if sum(option.name == other.name for other in options) > 1:
            raise InputError(f"{FLAG} {option.name} is given twice", "give it once")
        if not any(option.name == disk.name for profile in profiles for disk in profile.disks):
            names = list(dict.fromkeys(disk.name for each in profiles for disk in each.disks))
            remedy = did_you_mean(option.name, names) or f"disks: {', '.join(names)}"
            raise InputError(f"{FLAG} {option.name}: no profile has such a disk", remedy)
    found = []
    for profile in profiles:
        of_it = {disk.name: disk for disk in profile.disks}
        own = [option for option in options if option.name in of_it]
        for option in own:
            named = of_it[option.name].model
            if option.model and named and named != option.model:
                raise InputError(
                    f"{FLAG} {option.name}={option.model}: profile {profile.name!r} names {named}",
                    "drop one of the two",
                )
        found.append(with_disks(profile, own))
    return tuple(found)


def _changed(disk: DiskSpec, option: DiskOption) -> DiskSpec:
    # The path is relative to the original working directory, but a run can be resumed from
    # anywhere.
    is_file = "/" in option.model or option.model.endswith(".toml")
    model = str(Path(option.model).absolute()) if is_file else option.model
    model = "" if model == RAM else model or disk.model
    return replace(disk, model=model, size_bytes=option.size_bytes or disk.size_bytes)


def _size_bytes(text: str, size: str) -> int:
    try:
        found = parse_size_bytes(size)
    except InputError as error:
        raise InputError(f"{FLAG} {text}: {error.what}", error.remedy) from None
    if not SMALLEST_BYTES <= found <= LARGEST_BYTES or found % BLOCK_BYTES:
        raise InputError(
            f"{FLAG} {text}: a disk of {found} bytes cannot be made",
            "give 64K to 1T, in whole 4 KiB blocks",
        )
    return found
