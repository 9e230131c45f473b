"""Device files: sections of values, each with an optional source. The models define the meaning of
the fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fscost import files, typed
from fscost.errors import InputError, did_you_mean

_LARGEST_FILE_BYTES = 1 << 20
_NAME_A_FILE = "name a TOML file that describes a device, or a device that `fscost devices` lists"
SECTIONS = {"wear": "NAND, its mapping and its rated cycles", "latency": "times of requests"}
"""Sections that a file may have, and their contents."""


@dataclass(frozen=True)
class Section:
    """Values of a section, and the sources of the values that name one."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]


@dataclass(frozen=True)
class Device:
    """A device: the sections of its file, and the file's text."""

    name: str
    summary: str
    kind: str
    aliases: tuple[str, ...]
    sections: Mapping[str, Section]
    origin: str
    text: str

    def section(self, name: str) -> Section:
        """Return a section. InputError if the file does not have it."""
        if name not in self.sections:
            having = ", ".join(each.name for each in catalogue() if name in each.sections)
            raise InputError(
                f"device {self.name!r} has no section [{name}]: {SECTIONS[name]}",
                f"add the section to a file of your own, or name one of: {having}",
            )
        return self.sections[name]


@cache
def catalogue() -> tuple[Device, ...]:
    """Return the devices that come with fscost, by name."""
    folder = resources.files("fscost.devices") / "catalogue"
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".toml")),
        key=lambda file: file.name,
    )
    return tuple(
        parse(file.name.removesuffix(".toml"), file.name, file.read_text(encoding="utf-8"))
        for file in found
    )


def is_file_name(name: str) -> bool:
    """True if the name of a device is a file name."""
    return name.endswith(".toml") or "/" in name


def find(name: str) -> Device:
    """Find a device: in a file if the name ends in .toml or contains a slash, else in the
    catalogue."""
    if is_file_name(name):
        return read_device(Path(name))
    known = {each: device for device in catalogue() for each in (device.name, *device.aliases)}
    if name not in known:
        close = did_you_mean(name, known) or f"devices: {', '.join(known)}"
        raise InputError(
            f"unknown device {name!r}",
            f"{close} (`fscost devices` lists all; a file of your own ends in .toml)",
        )
    return known[name]


def read_device(path: Path) -> Device:
    """Read a user's device file."""
    try:
        with files.open_regular(path) as file:
            content = files.content(file, _LARGEST_FILE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", _NAME_A_FILE) from error
    if content is None:
        raise InputError(f"{path} is larger than {_LARGEST_FILE_BYTES >> 20} MiB", _NAME_A_FILE)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}", _NAME_A_FILE) from error
    return parse(path.stem, str(path), text)


def parse(name: str, file: str, text: str) -> Device:
    """Parse a device from TOML. An InputError names the file, the field and the remedy. A field is
    a plain value, or `{ value = …, source = "…" }`."""
    try:
        table = typed.toml(text)
    except ValueError as error:
        raise InputError(
            f"{file}: {error}", "`fscost devices NAME --toml` prints a template"
        ) from None
    for key in table:
        if key not in (*SECTIONS, "summary", "kind", "aliases"):
            remedy = did_you_mean(key, SECTIONS) or "write it into a section [wear] or [latency]"
            raise wrong(file, key, "no such field", remedy)
    aliases = table.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
        raise wrong(file, "aliases", "must be a list of names", 'write it as aliases = ["…"]')
    sections = {each: _section(file, each, table[each]) for each in SECTIONS if each in table}
    if not sections:
        raise InputError(f"{file}: has no section", "add a section [wear] or [latency]")
    return Device(
        name,
        _text(file, "summary", table, name),
        _text(file, "kind", table, ""),
        tuple(aliases),
        sections,
        file,
        text,
    )


def wrong(file: str, name: str, what: str, remedy: str) -> InputError:
    """Return the error for a field that cannot be used."""
    return InputError(f"{file}: {name}: {what}", remedy)


def _text(file: str, key: str, table: Mapping[str, Any], default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or "\n" in value:
        raise wrong(file, key, "must be one line of text", f'write it as {key} = "…"')
    return value


def _section(file: str, name: str, table: Any) -> Section:
    if not isinstance(table, dict):
        raise wrong(file, name, "must be a section", f"write it as [{name}]")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, found in table.items():
        values[key] = found
        if isinstance(found, dict):
            source = found.get("source", "")
            is_value = "value" in found and found.keys() <= {"value", "source"}
            if not is_value or not isinstance(source, str):
                raise wrong(
                    file,
                    f"{name}.{key}",
                    "is not a table of value and source",
                    'write it as { value = …, source = "…" }',
                )
            values[key] = found["value"]
            if source:
                sources[key] = source
    return Section(values, sources)
