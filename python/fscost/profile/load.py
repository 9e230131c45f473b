"""Catalogue of named profiles, read from `catalogue/*.toml` and checked field by field."""

import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import Field

from fscost import typed
from fscost.errors import InputError
from fscost.profile.families import family_of
from fscost.profile.model import DiskSpec, Profile
from fscost.profile.spelling import extend, split_words

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
Commands = typed.Tuple[Annotated[typed.Tuple[str], Field(min_length=1)]]


@dataclass(frozen=True)
class _Disk(typed.ClosedTable):
    size_mib: Annotated[int, Field(ge=0)]
    """Size 0 is the size that the run requests."""


@dataclass(frozen=True)
class _Entry(typed.ClosedTable):
    """Table of a profile."""

    spelling: typed.Text
    summary: typed.Text
    refused: str = ""
    after_mkfs: Commands = ()
    after_mount: Commands = ()
    background: Commands = ()
    disks: typed.Dict[_Disk] = field(default_factory=dict)


@cache
def load_catalogue() -> tuple[Profile, ...]:
    """Load every profile of the catalogue, in the order of the files. The result is cached, because
    the files are part of the program."""
    folder = resources.files("fscost.profile") / "catalogue"
    profiles: dict[str, Profile] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        for profile in read_catalogue(file.name, file.read_text(encoding="utf-8")):
            if profile.name in profiles:
                raise InputError(
                    f"{file.name}: '{profile.name}' is in another file too", "give it another name"
                )
            profiles[profile.name] = profile
    return tuple(profiles.values())


def read_catalogue(file: str, text: str) -> list[Profile]:
    """Read the profiles of one file; an InputError names the file and the field."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{file}: {error}", "see the other files of the catalogue for the syntax"
        ) from None
    return [read_profile(file, name, table) for name, table in tables.items()]


def read_profile(file: str, name: str, table: Any) -> Profile:
    """Read a profile's table; an InputError names the file and the field."""
    place = f"{file}: {name}"
    _require(bool(_NAME.fullmatch(name)), place, "a name is lower-case words joined by '-'")
    try:
        entry = typed.read(_Entry, table, name)
    except typed.InvalidError as error:
        raise InputError(f"{file}: {error}") from None
    for key, text in (("summary", entry.summary), ("refused", entry.refused)):
        _require("\n" not in text, f"{place}.{key}", "must be one line")
    try:
        words = split_words(entry.spelling)
        is_formattable = family_of(words[0]) is not None
        _require(is_formattable, f"{place}.spelling", "must begin with a type that has a family")
        profile = extend(Profile(name, words[0]), name, words[1:])
    except InputError as error:
        raise InputError(f"{place}.spelling: {error.what}", error.remedy) from None
    disks = {disk.name: disk for disk in profile.disks}
    disks |= {key: DiskSpec(key, disk.size_mib << 20) for key, disk in entry.disks.items()}
    return replace(
        profile,
        disks=tuple(disks.values()),
        summary=entry.summary,
        refused=entry.refused,
        after_mkfs=entry.after_mkfs,
        after_mount=entry.after_mount,
        background=entry.background,
    )


def _require(holds: bool, place: str, what: str) -> None:
    if not holds:
        raise InputError(f"{place}: {what}")
