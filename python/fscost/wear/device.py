"""Devices described in TOML, from the catalogue or from users. Every field is checked; every value
may name its source."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fscost import files
from fscost.errors import InputError, did_you_mean

_LARGEST_FILE_BYTES = 1 << 20
_MOST_BYTES = 16 << 40
"""Largest capacity: 16 TiB."""
KINDS = ("consumer SSD", "enterprise SSD", "first-generation SSD", "SD card", "eMMC")
_WORDS = {
    "mapping": ("page", "block", "bast", "fast"),
    "collection": ("greedy", "fifo", "random", "choices"),
}


@dataclass(frozen=True)
class Parameter:
    """A field of a device file: kind, range, default (None: required) and meaning."""

    name: str
    kind: type
    meaning: str
    default: Any = None
    least: float = 0
    most: float = 1 << 32
    is_required: bool = False


PARAMETERS = {
    each.name: each
    for each in (
        Parameter(
            "capacity_bytes",
            int,
            "bytes that the host can address",
            least=1 << 20,
            most=_MOST_BYTES,
            is_required=True,
        ),
        Parameter(
            "nand_bytes",
            int,
            "bytes of NAND, bad blocks left out",
            least=1 << 20,
            most=2 * _MOST_BYTES,
            is_required=True,
        ),
        Parameter(
            "block_bytes",
            int,
            "bytes that are erased together",
            least=4096,
            most=1 << 34,
            is_required=True,
        ),
        Parameter(
            "pe_cycles",
            int,
            "program/erase cycles that a block is rated for",
            least=1,
            most=10**7,
            is_required=True,
        ),
        Parameter(
            "unit_bytes",
            int,
            "bytes that one entry of the mapping table covers",
            4096,
            512,
            1 << 24,
        ),
        Parameter(
            "page_bytes",
            int,
            "bytes of a NAND page; a flush fills the open page up",
            4096,
            512,
            1 << 24,
        ),
        Parameter(
            "mapping",
            str,
            "page, block (open blocks written in ascending order), bast or fast (log blocks)",
            "page",
        ),
        Parameter(
            "collection",
            str,
            "how a page-mapped device chooses what to collect: greedy, fifo, random, choices",
            "greedy",
        ),
        Parameter("choices", int, "candidates of collection = choices", 10, 1, 1 << 16),
        Parameter("hot_cold", bool, "copies go to blocks of their own", False),
        Parameter("reserved_blocks", int, "blocks kept free for collection", 1, 1, 1 << 24),
        Parameter(
            "levelling_gap",
            int,
            "static wear levelling moves data when erase counts differ by more; 0: never",
            0,
            0,
            1 << 24,
        ),
        Parameter("open_blocks", int, "blocks that mapping = block can continue", 1, 0, 1 << 16),
        Parameter("log_blocks", int, "log blocks of bast and fast", 8, 1, 1 << 24),
        Parameter(
            "buffer_bytes",
            int,
            "write buffer, where rewritten data is programmed once",
            0,
            0,
            1 << 36,
        ),
        Parameter(
            "power_loss_protection",
            bool,
            "capacitors keep the buffer, so that a flush programs nothing",
            False,
        ),
        Parameter("read_us", int, "microseconds to read a NAND page; 0: unknown", 0, 0, 10**7),
        Parameter(
            "program_us", int, "microseconds to program a NAND page; 0: unknown", 0, 0, 10**7
        ),
        Parameter("erase_us", int, "microseconds to erase a block; 0: unknown", 0, 0, 10**7),
        Parameter(
            "parallel_pages",
            int,
            "pages read or programmed side by side (channels × planes)",
            1,
            1,
            1 << 16,
        ),
        Parameter(
            "rated_write_bytes", int, "host bytes that the maker warrants (TBW)", 0, 0, 1 << 62
        ),
    )
}
"""The fields of a device, beside `summary` and `kind`."""


@dataclass(frozen=True)
class Device:
    """A device. `sources` holds the source of each given value."""

    name: str
    summary: str
    kind: str
    values: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""

    @property
    def spare(self) -> float:
        """(physical - logical) ÷ physical, nominal."""
        return 1 - float(self.values["capacity_bytes"]) / float(self.values["nand_bytes"])

    @property
    def over_provisioning(self) -> float:
        """(physical - logical) ÷ logical, nominal."""
        return float(self.values["nand_bytes"]) / float(self.values["capacity_bytes"]) - 1

    def with_spare(self, spare: float) -> "Device":
        """The same NAND with another share of spare."""
        capacity = int(self.values["nand_bytes"] * (1 - spare)) // 4096 * 4096
        return replace(self, values={**self.values, "capacity_bytes": capacity})

    def native(self, seed: int) -> dict[str, Any]:
        """Arguments of the native module."""
        found = {
            name: self.values[name]
            for name in PARAMETERS
            if name not in ("nand_bytes", "pe_cycles", "rated_write_bytes")
        }
        return {
            **found,
            "spare": self.spare,
            "levelling_gap": self.values["levelling_gap"] or None,
            "seed": seed,
        }


@cache
def catalogue() -> tuple[Device, ...]:
    """The devices that come with fscost, by name."""
    folder = resources.files("fscost.wear") / "catalogue"
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
    known = {device.name: device for device in catalogue()}
    if name not in known:
        close = did_you_mean(name, known) or f"devices: {', '.join(known)}"
        raise InputError(
            f"unknown device {name!r}",
            f"{close} (`fscost devices` lists all; a file of your own ends in .toml)",
        )
    return known[name]


def read_device(path: Path) -> Device:
    """A user's file."""
    try:
        with files.open_regular(path) as file:
            content = files.content(file, _LARGEST_FILE_BYTES)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}",
            "name a TOML file that describes a device, or a device of `fscost devices`",
        ) from error
    if content is None:
        raise InputError(
            f"{path} is larger than {_LARGEST_FILE_BYTES >> 20} MiB",
            "name a TOML file that describes a device",
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 text: {error}", "name a TOML file that describes a device"
        ) from error
    return parse(path.stem, str(path), text)


def parse(name: str, file: str, text: str) -> Device:
    """A device from TOML; InputError names the file, the field and the remedy. A value is itself,
    or `{ value = …, source = "…" }`."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"{file}: {error}", "`fscost devices NAME --toml` prints a file to begin with"
        ) from None
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, found in table.items():
        if key in ("summary", "kind"):
            continue
        if key not in PARAMETERS:
            raise _wrong(
                file,
                key,
                "no such field",
                did_you_mean(key, PARAMETERS) or f"fields: {', '.join(PARAMETERS)}",
            )
        values[key], sources[key] = _value(file, PARAMETERS[key], found)
    for each in PARAMETERS.values():
        if each.is_required and each.name not in values:
            raise _wrong(file, each.name, "is missing", f"add it: {each.meaning}")
    summary, kind = _text(file, "summary", table, name), _text(file, "kind", table, "")
    given = {key: each.default for key, each in PARAMETERS.items()} | values
    _check_together(file, given)
    return Device(
        name, summary, kind, given, {key: source for key, source in sources.items() if source}, file
    )


def _text(file: str, key: str, table: Mapping[str, Any], default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or "\n" in value:
        raise _wrong(file, key, "must be one line of text", f'write it as {key} = "…"')
    return value


def _value(file: str, parameter: Parameter, found: Any) -> tuple[Any, str]:
    source = ""
    if isinstance(found, dict):
        if (
            not found.keys() <= {"value", "source"}
            or "value" not in found
            or not isinstance(found.get("source", ""), str)
        ):
            raise _wrong(
                file,
                parameter.name,
                "is a table of something else",
                'write it as { value = …, source = "…" }',
            )
        found, source = found["value"], found.get("source", "")
    if type(found) is not parameter.kind:
        word = {int: "a whole number", str: "a text", bool: "true or false"}[parameter.kind]
        raise _wrong(file, parameter.name, f"is {found!r}, not {word}", parameter.meaning)
    if parameter.name in _WORDS and found not in _WORDS[parameter.name]:
        raise _wrong(
            file, parameter.name, f"is {found!r}", f"one of: {', '.join(_WORDS[parameter.name])}"
        )
    if (
        isinstance(found, int)
        and not isinstance(found, bool)
        and not parameter.least <= found <= parameter.most
    ):
        raise _wrong(
            file,
            parameter.name,
            f"is {found}",
            f"give a number from {parameter.least:.0f} to {parameter.most:.0f}",
        )
    return found, source


def _check_together(file: str, values: Mapping[str, Any]) -> None:
    if values["nand_bytes"] < values["capacity_bytes"]:
        raise _wrong(
            file,
            "nand_bytes",
            "is less than capacity_bytes",
            "a device has at least as much NAND as the host can address",
        )
    if values["block_bytes"] % values["page_bytes"] or values["block_bytes"] % values["unit_bytes"]:
        raise _wrong(
            file,
            "block_bytes",
            "is no multiple of page_bytes and unit_bytes",
            "an erase block holds whole pages and units",
        )
    if values["page_bytes"] % values["unit_bytes"] and values["unit_bytes"] % values["page_bytes"]:
        raise _wrong(
            file,
            "page_bytes",
            "is neither a multiple nor a divisor of unit_bytes",
            "give powers of two",
        )
    if values["nand_bytes"] < 4 * values["block_bytes"]:
        raise _wrong(
            file,
            "block_bytes",
            "is more than a quarter of nand_bytes",
            "give the size of one erase block",
        )


def _wrong(file: str, name: str, what: str, remedy: str) -> InputError:
    return InputError(f"{file}: {name}: {what}", remedy)


def to_toml(device: Device) -> str:
    """The device as TOML; `read_device` reads it back unchanged."""
    lines = [f"summary = {_quoted(device.summary)}", f"kind = {_quoted(device.kind)}", ""]
    for name, value in device.values.items():
        text = (
            str(value).lower()
            if isinstance(value, bool)
            else _quoted(value)
            if isinstance(value, str)
            else str(value)
        )
        source = device.sources.get(name)
        lines.append(
            f"{name} = {{ value = {text}, source = {_quoted(source)} }}"
            if source
            else f"{name} = {text}"
        )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """TOML's basic strings are JSON's (toml.io, String)."""
    return json.dumps(text, ensure_ascii=False)
