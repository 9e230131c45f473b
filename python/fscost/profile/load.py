"""Catalogue of named profiles, read from `catalogue/*.toml` and checked field by field."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from fscost.errors import InputError
from fscost.profile.families import family_of
from fscost.profile.model import DiskSpec, Profile
from fscost.profile.spelling import extend, split_words

_COMMANDS = ("after_mkfs", "after_mount", "background")
_FIELDS: dict[str, type] = {
    "spelling": str,
    "summary": str,
    "refused": str,
    **dict.fromkeys(_COMMANDS, list),
    "disks": dict,
}
_REQUIRED = ("spelling", "summary")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


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
    return [_read_profile(file, name, table) for name, table in tables.items()]


def _read_profile(file: str, name: str, table: Any) -> Profile:
    place = f"{file}: {name}"
    _require(bool(_NAME.fullmatch(name)), place, "a name is lower-case words joined by '-'")
    _require(isinstance(table, dict), place, "a profile is a table")
    for key, value in table.items():
        _require(key in _FIELDS, f"{place}.{key}", f"no such field; there are {', '.join(_FIELDS)}")
        is_type = isinstance(value, _FIELDS[key])
        _require(is_type, f"{place}.{key}", f"must be a {_FIELDS[key].__name__}")
    for key in _REQUIRED:
        _require(bool(table.get(key)), f"{place}.{key}", "is missing")
    for key in ("summary", "refused"):
        _require("\n" not in table.get(key, ""), f"{place}.{key}", "must be one line")
    try:
        words = split_words(table["spelling"])
        is_formattable = family_of(words[0]) is not None
        _require(is_formattable, f"{place}.spelling", "must begin with a type that has a family")
        profile = extend(Profile(name, words[0]), name, words[1:])
    except InputError as error:
        raise InputError(f"{place}.spelling: {error.what}", error.remedy) from None
    commands: dict[str, Any] = {
        key: _commands(f"{place}.{key}", table.get(key, [])) for key in _COMMANDS
    }
    return replace(
        profile,
        disks=_disks(f"{place}.disks", profile.disks, table.get("disks", {})),
        summary=table["summary"],
        refused=table.get("refused", ""),
        **commands,
    )


def _disks(
    place: str, disks: tuple[DiskSpec, ...], table: Mapping[str, Any]
) -> tuple[DiskSpec, ...]:
    """Parse `disks.journal = { size_mib = 256 }`; size 0 is the size that the run requests."""
    named = {disk.name: disk for disk in disks}
    for disk, spec in table.items():
        is_size = isinstance(spec, dict) and set(spec) == {"size_mib"}
        _require(is_size, f"{place}.{disk}", "must be { size_mib = NUMBER }")
        size_mib = spec["size_mib"]
        is_whole = isinstance(size_mib, int) and size_mib >= 0
        _require(is_whole, f"{place}.{disk}.size_mib", "must be a whole number")
        named[disk] = DiskSpec(disk, size_mib << 20)
    return tuple(named.values())


def _commands(place: str, commands: list[Any]) -> tuple[tuple[str, ...], ...]:
    for command in commands:
        words = (
            isinstance(command, list) and command and all(isinstance(word, str) for word in command)
        )
        _require(bool(words), place, "must be a list of argument lists")
    return tuple(map(tuple, commands))


def _require(holds: bool, place: str, what: str) -> None:
    if not holds:
        raise InputError(f"{place}: {what}")
