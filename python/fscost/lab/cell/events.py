"""Parser for an agent's events. Its output is untrusted: a damaged stream must become a failed
cell, never an unexpected exception.

docs/cell-protocol.md describes the fields.
"""

import dataclasses
import json
import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from typing import Annotated, Any, get_args

from fscost.lab.cell import bounds

MAX_COUNT = 1 << 63  # kernel counters have 64 bits; larger numbers are damage
MAX_EVENTS = 10_000
"""Maximum number of events of one cell; a cell has a few for each step."""
COUNTERS = (
    "read_requests",
    "read_bytes",
    "write_requests",
    "write_bytes",
    "discard_requests",
    "discard_bytes",
    "flush_requests",
)


Histogram = tuple[tuple[int, int], ...]
"""Values in ascending order, each with its count."""
Status = Annotated[int, "status"]


class ProtocolError(Exception):
    """The agent violated the protocol."""


class OverdueError(ProtocolError):
    """The cell exceeded its time limit."""


@dataclass(frozen=True)
class Attached:
    """A disk was attached to its block device."""

    disk: str
    device: str
    queue: dict[str, Any]


@dataclass(frozen=True)
class Mounted:
    """Mount as the kernel reports it."""

    type: str
    options: str
    super_options: str
    mountinfo: str


@dataclass(frozen=True)
class Inspected:
    """Output of a tool about the new file system."""

    name: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One interval: mkfs, mount, or a step. `counters` are the kernel's counters of this interval,
    for each disk."""

    name: str
    measured: bool
    wall_ns: int
    command_ns: int
    settle_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    cpu_kernel_threads_ns: int | None = None
    cpu_disk_server_ns: int | None = None
    program_write_bytes: int
    program_read_bytes: int
    space_used_bytes: int | None = None
    metadata_used_bytes: int | None = None
    sync_calls: int | None = None
    sync_times_ns: Histogram | None = None
    """Durations of fsync and fdatasync in ascending order, each with its number of calls."""
    probe_interval_ms: int | None = None
    pauses_ns: "array[int]" = field(default_factory=lambda: array("q"))
    counters: dict[str, dict[str, int]]
    settle_write_bytes: dict[str, int] = field(default_factory=dict)
    unmount_write_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes by disk; empty if the interval had no such part."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The agent gave up, with the reason."""

    step: str
    kind: str
    message: str
    status: Status | None = None
    signal: Status | None = None
    kernel: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """The cell is complete. `recording` holds the disk server's own totals (empty without a
    server)."""

    recording: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hello:
    """A guest has started and waits for its plan."""

    agent: str
    kernel: str


@dataclass(frozen=True)
class Alive:
    """A guest is alive and has nothing else to report."""


@dataclass(frozen=True)
class Output:
    """Part of the output of a guest's commands."""

    text: str


@dataclass(frozen=True)
class Bye:
    """A guest is powering off."""


Event = Attached | Mounted | Inspected | Interval | Failed | Done | Hello | Alive | Output | Bye


def parse(line: bytes) -> Event:
    """Parse one line of the agent's output."""
    pauses: array[int] | None = None
    try:
        if len(line) > bounds.MAX_LINE_BYTES:
            line, pauses = bounds.take_pauses(line)
        if len(line) > bounds.MAX_LINE_BYTES:
            raise ValueError(f"longer than {bounds.MAX_LINE_BYTES} bytes")
        value = json.loads(line, parse_float=_finite, parse_constant=_finite)
        # A lone surrogate is a legal escape, but cannot be written to a file.
        if b"\\ud" in line.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {_shown(line)} ({error})") from None
    fields = _Fields(value, line)
    kind = fields.text("event")
    if kind not in _KINDS:
        raise ProtocolError(f"unknown event {kind[:40]!r}")
    if len(line) > bounds.MAX_BYTES.get(kind, bounds.MAX_LINE_BYTES):
        raise ProtocolError(f"{kind!r} of {len(line)} bytes")
    match event := _event(_KINDS[kind], fields):
        case Interval() if pauses is not None:
            return replace(event, pauses_ns=pauses)
        case Inspected():
            return replace(event, output=event.output[: bounds.MAX_INSPECTED_CHARACTERS])
    return event


class _Fields:
    """An untrusted object; every accessor reports the type it expected."""

    def __init__(self, value: object, line: bytes) -> None:
        if not isinstance(value, dict):
            raise ProtocolError(f"not an object: {_shown(line)}")
        self._value: Mapping[str, object] = value
        self._line = line

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def text(self, name: str) -> str:
        value = self._value.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def flag(self, name: str) -> bool:
        value = self._value.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def count(self, name: str) -> int:
        value = self._value.get(name)
        if not _is_count(value):
            raise self._wrong(name, "a count")
        return value  # type: ignore[return-value]  # narrowed by _is_count

    def status(self, name: str) -> int:
        value = self._value.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 31:
            raise self._wrong(name, "a status")
        return value

    def object(self, name: str) -> dict[str, Any]:
        value = self._value.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._value.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of strings")
        return tuple(value)

    def histogram(self, name: str) -> Histogram:
        pairs = self._value.get(name)
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 and all(map(_is_count, pair))
            for pair in pairs
        ):
            raise self._wrong(name, "a list of pairs of counts")
        return tuple((value, count) for value, count in sorted(pairs))

    def probe(self, name: str) -> dict[str, Any]:
        inner = _Fields(self.object(name), self._line)
        pauses = inner._value.get("pauses_ns")
        if not isinstance(pauses, list) or not all(map(_is_count, pauses)):
            raise self._wrong("pauses_ns", "a list of counts")
        interval_ms = inner.count("interval_ms")
        return {"probe_interval_ms": interval_ms, "pauses_ns": array("q", pauses)}

    def counters(self, name: str) -> dict[str, dict[str, int]]:
        result = {}
        for disk, value in self.object(name).items():
            inner = _Fields(value, self._line)
            result[disk] = {counter: inner.count(counter) for counter in COUNTERS}
        return result

    def counts(self, name: str) -> dict[str, int]:
        inner = _Fields(self.object(name), self._line)
        return {disk: inner.count(disk) for disk in inner._value}

    def _wrong(self, name: str, expected: str) -> ProtocolError:
        return ProtocolError(f"{name!r} is not {expected}: {_shown(self._line)}")


_KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}
_READERS: Mapping[Any, Callable[[_Fields, str], object]] = {
    str: _Fields.text,
    bool: _Fields.flag,
    int: _Fields.count,
    int | None: _Fields.count,
    Status | None: _Fields.status,
    Histogram | None: _Fields.histogram,
    tuple[str, ...]: _Fields.texts,
    dict[str, Any]: _Fields.object,
    dict[str, int]: _Fields.counts,
    dict[str, dict[str, int]]: _Fields.counters,
}
"""Reader of a field of each type. A field with a default may be missing."""


def _event(kind: type[Event], fields: _Fields) -> Event:
    values = fields.probe("probe") if kind is Interval and fields.has("probe") else {}
    for each in dataclasses.fields(kind):
        has_default = each.default is not MISSING or each.default_factory is not MISSING
        if each.name not in ("probe_interval_ms", "pauses_ns") and (
            fields.has(each.name) or not has_default
        ):
            values[each.name] = _READERS[each.type](fields, each.name)
    return kind(**values)


def _finite(text: str) -> float:
    """Parse a finite number. Facts are written as JSON again, which has neither infinity nor NaN,
    although Python's parser accepts them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not finite")
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT


def _shown(line: bytes) -> str:
    """Beginning of a line, safe to print."""
    return repr(line[:120])[1:]
