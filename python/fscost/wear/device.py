"""Section [wear] of a device: NAND, its mapping and its rated cycles. Every field is checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fscost import devices
from fscost.errors import InputError, did_you_mean

_MOST_BYTES = 16 << 40
_MOST_OF_LATENCY = 1_000_000_000
"""Largest capacity: 16 TiB."""
_SHARED = ("buffer_bytes", "power_loss_protection")
"""Fields that the section [latency] has too."""
_WORDS = {
    "mapping": ("page", "block", "bast", "fast"),
    "collection": ("greedy", "fifo", "random", "choices"),
}


@dataclass(frozen=True)
class Parameter:
    """A field of the section: kind, range, default (None: required) and meaning."""

    name: str
    kind: type
    meaning: str
    default: Any = None
    least: float = 0
    most: float = 1 << 32


PARAMETERS = {
    each.name: each
    for each in (
        Parameter(
            "capacity_bytes", int, "bytes that the host can address", None, 1 << 20, _MOST_BYTES
        ),
        Parameter(
            "nand_bytes", int, "bytes of NAND, bad blocks left out", None, 1 << 20, 2 * _MOST_BYTES
        ),
        Parameter("block_bytes", int, "bytes that are erased together", None, 4096, 1 << 34),
        Parameter(
            "pe_cycles", int, "program/erase cycles that a block is rated for", None, 1, 10**7
        ),
        Parameter(
            "pe_cycles_most",
            int,
            "cycles that blocks of this kind survive at best; 0: as pe_cycles",
            0,
            0,
            10**7,
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
            "bytes of a NAND page; a flush pads the open page",
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
        Parameter(
            "choices", int, "number of candidate blocks, with collection = choices", 10, 1, 1 << 16
        ),
        Parameter("hot_cold", bool, "garbage collection copies to separate blocks", False),
        Parameter("reserved_blocks", int, "blocks kept free for collection", 1, 1, 1 << 24),
        Parameter(
            "levelling_gap",
            int,
            "static wear levelling moves data if erase counts differ by more than this; 0: never",
            0,
            0,
            1 << 24,
        ),
        Parameter("open_blocks", int, "open blocks, with mapping = block", 1, 0, 1 << 16),
        Parameter("log_blocks", int, "log blocks of bast and fast", 8, 1, 1 << 24),
        Parameter(
            "buffer_bytes",
            int,
            "bytes of write buffer, by default that of [latency]; data rewritten in it is programmed"
            " once",
            0,
            0,
            1 << 36,
        ),
        Parameter(
            "power_loss_protection",
            bool,
            "capacitors protect the buffer, so that a flush programs nothing",
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
        Parameter("rated_write_bytes", int, "rated endurance in host bytes (TBW)", 0, 0, 1 << 62),
    )
}
"""The fields of the section."""


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

    @property
    def most_pe_cycles(self) -> int:
        """Cycles that its blocks survive at best; `pe_cycles` if no range is known."""
        return int(self.values["pe_cycles_most"] or self.values["pe_cycles"])

    def with_spare(self, spare: float) -> "Device":
        """Return the same NAND with another share of spare."""
        capacity = int(self.values["nand_bytes"] * (1 - spare)) // 4096 * 4096
        return replace(self, values={**self.values, "capacity_bytes": capacity})

    def native(self, seed: int) -> dict[str, Any]:
        """Return the arguments for the native module."""
        found = {
            name: self.values[name]
            for name in PARAMETERS
            if name not in ("nand_bytes", "pe_cycles", "pe_cycles_most", "rated_write_bytes")
        }
        return {
            **found,
            "spare": self.spare,
            "levelling_gap": self.values["levelling_gap"] or None,
            "seed": seed,
        }


def find(name: str) -> Device:
    """Find a device: in a file if the name ends in .toml or contains a slash, else in the
    catalogue."""
    return of_file(devices.find(name))


def of_file(file: devices.Device) -> Device:
    """Read the section [wear] of a device; an InputError names the file, the field and the
    remedy."""
    section = file.section("wear")
    shared = _shared(file)
    values: dict[str, Any] = {}
    for key, found in {**shared.values, **section.values}.items():
        if key not in PARAMETERS:
            raise _wrong(
                file.origin,
                key,
                "no such field",
                did_you_mean(key, PARAMETERS) or f"fields: {', '.join(PARAMETERS)}",
            )
        values[key] = _value(file.origin, PARAMETERS[key], found)
    for each in PARAMETERS.values():
        if each.default is None and each.name not in values:
            raise _wrong(file.origin, each.name, "is missing", f"add it: {each.meaning}")
    given = {key: each.default for key, each in PARAMETERS.items()} | values
    _check_together(file.origin, given)
    timing = _timing(file, given["page_bytes"])
    sources = {**shared.sources, **section.sources}
    if not timing.values.keys() & section.values.keys():
        given |= timing.values
        sources |= timing.sources
    return Device(file.name, file.summary, file.kind, given, sources, file.origin)


def _shared(file: devices.Device) -> devices.Section:
    """Return what the section [latency] says about the write buffer. There is one buffer, so that
    [wear] need not describe it again."""
    latency = file.sections.get("latency", devices.Section({}, {}))
    return devices.Section(
        {name: latency.values[name] for name in _SHARED if name in latency.values},
        {name: latency.sources[name] for name in _SHARED if name in latency.sources},
    )


def _timing(file: devices.Device, page_bytes: int) -> devices.Section:
    """Return the times of NAND operations from the section [latency], for pages of this size. Its
    programs are of `program_bytes`, several pages at once."""
    latency = file.sections.get("latency", devices.Section({}, {}))
    found = {"channels": 1, "dies_per_channel": 1} | dict(latency.values)
    names = {"page_read_us", "program_us", "program_bytes", "erase_us"}
    if not names <= found.keys():
        return devices.Section({}, {})
    for name in sorted(names | {"channels", "dies_per_channel"}):
        number = found[name]
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not is_number or not 0 < number < _MOST_OF_LATENCY:
            remedy = f"give a number above 0 and below {_MOST_OF_LATENCY}"
            raise _wrong(file.origin, f"{name} of [latency]", f"is {number!r}", remedy)
    pages = found["program_bytes"] / page_bytes
    values = {
        "read_us": max(round(found["page_read_us"]), 1),
        "program_us": max(round(found["program_us"] / pages), 1),
        "erase_us": max(round(found["erase_us"]), 1),
        "parallel_pages": round(found["channels"] * found["dies_per_channel"]),
    }
    values = {key: _value(file.origin, PARAMETERS[key], each) for key, each in values.items()}
    return devices.Section(values, dict.fromkeys(values, "as in [latency], a page of each die"))


def _value(file: str, parameter: Parameter, found: Any) -> Any:
    if type(found) is not parameter.kind:
        word = {int: "a whole number", str: "a string", bool: "true or false"}[parameter.kind]
        raise _wrong(file, parameter.name, f"is {found!r}, not {word}", parameter.meaning)
    if parameter.name in _WORDS and found not in _WORDS[parameter.name]:
        raise _wrong(
            file, parameter.name, f"is {found!r}", f"one of: {', '.join(_WORDS[parameter.name])}"
        )
    if isinstance(found, int) and not parameter.least <= found <= parameter.most:
        raise _wrong(
            file,
            parameter.name,
            f"is {found}",
            f"give a number from {parameter.least:.0f} to {parameter.most:.0f}",
        )
    return found


def _check_together(file: str, values: Mapping[str, Any]) -> None:
    nand, block, page, unit = (
        values[name] for name in ("nand_bytes", "block_bytes", "page_bytes", "unit_bytes")
    )
    for is_wrong, name, what, remedy in (
        (
            nand < values["capacity_bytes"],
            "nand_bytes",
            "is less than capacity_bytes",
            "a device has at least as much NAND as the host can address",
        ),
        (
            block % page or block % unit,
            "block_bytes",
            "is not a multiple of page_bytes and unit_bytes",
            "an erase block holds whole pages and units",
        ),
        (
            page % unit and unit % page,
            "page_bytes",
            "is neither a multiple nor a divisor of unit_bytes",
            "give powers of two",
        ),
        (
            0 < values["pe_cycles_most"] < values["pe_cycles"],
            "pe_cycles_most",
            "is less than pe_cycles",
            "give the larger number, or leave it out",
        ),
        (
            nand < 4 * block,
            "block_bytes",
            "is more than a quarter of nand_bytes",
            "give the size of one erase block",
        ),
    ):
        if is_wrong:
            raise _wrong(file, name, what, remedy)


def _wrong(file: str, name: str, what: str, remedy: str) -> InputError:
    return devices.wrong(file, f"wear.{name}", what, remedy)
