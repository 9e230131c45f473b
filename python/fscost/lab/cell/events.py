"""Parser for an agent's events. Its output is untrusted: a damaged stream must become a failed
cell, never an unexpected exception.

docs/cell-protocol.md describes the fields.
"""

import json
import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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

    mountinfo: str
    options: str
    super_options: str
    type: str


@dataclass(frozen=True)
class Inspected:
    """Output of a tool about the new file system."""

    name: str
    output: str


@dataclass(frozen=True)
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
    cpu_kernel_threads_ns: int | None
    cpu_disk_server_ns: int | None
    program_write_bytes: int
    program_read_bytes: int
    space_used_bytes: int | None
    metadata_used_bytes: int | None
    sync_calls: int | None
    sync_times_ns: tuple[tuple[int, int], ...] | None
    """Durations of fsync and fdatasync in ascending order, each with its number of calls."""
    probe_interval_ms: int | None
    pauses_ns: "array[int]"
    counters: dict[str, dict[str, int]]
    settle_write_bytes: dict[str, int] = field(default_factory=dict)
    unmount_write_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes by disk; empty if the interval had no such part."""


@dataclass(frozen=True)
class Failed:
    """The agent gave up, with the reason."""

    step: str
    kind: str
    message: str
    status: int | None
    signal: int | None
    kernel: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """The cell is complete. `recording` holds the disk server's own totals (empty without a
    server)."""

    recording: dict[str, Any]


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
    builder = _BUILDERS.get(kind)
    if builder is None:
        raise ProtocolError(f"unknown event {kind[:40]!r}")
    if len(line) > bounds.MAX_BYTES.get(kind, bounds.MAX_LINE_BYTES):
        raise ProtocolError(f"{kind!r} of {len(line)} bytes")
    event = builder(fields)
    return (
        replace(event, pauses_ns=pauses)
        if pauses is not None and isinstance(event, Interval)
        else event
    )


class _Fields:
    """An untrusted object; every accessor reports the type it expected."""

    def __init__(self, value: object, line: bytes) -> None:
        if not isinstance(value, dict):
            raise ProtocolError(f"not an object: {_shown(line)}")
        self._value: Mapping[str, object] = value
        self._line = line

    def text(self, name: str) -> str:
        value = self._value.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
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

    def count_or_none(self, name: str) -> int | None:
        return None if self._value.get(name) is None else self.count(name)

    def status(self, name: str) -> int | None:
        value = self._value.get(name)
        if value is None or (
            isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31
        ):
            return value
        raise self._wrong(name, "a status")

    def object(self, name: str) -> dict[str, Any]:
        value = self._value.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def object_or_empty(self, name: str) -> dict[str, Any]:
        return {} if self._value.get(name) is None else self.object(name)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._value.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts")
        return tuple(value)

    def histogram_or_none(self, name: str) -> tuple[tuple[int, int], ...] | None:
        """Read pairs of a value and its count, in ascending order; None if the field is missing."""
        pairs = self._value.get(name)
        if pairs is None:
            return None
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 and all(map(_is_count, pair))
            for pair in pairs
        ):
            raise self._wrong(name, "a list of pairs of counts")
        return tuple((value, count) for value, count in sorted(pairs))

    def probe(self, name: str) -> tuple[int | None, "array[int]"]:
        if self._value.get(name) is None:
            return None, array("q")
        inner = _Fields(self.object(name), self._line)
        pauses = inner._value.get("pauses_ns")
        if not isinstance(pauses, list) or not all(_is_count(pause) for pause in pauses):
            raise self._wrong("pauses_ns", "a list of counts")
        return inner.count("interval_ms"), array("q", pauses)

    def counters(self, name: str) -> dict[str, dict[str, int]]:
        result = {}
        for disk, value in self.object(name).items():
            inner = _Fields(value, self._line)
            result[disk] = {counter: inner.count(counter) for counter in COUNTERS}
        return result

    def counts(self, name: str) -> dict[str, int]:
        inner = _Fields(self.object_or_empty(name), self._line)
        return {disk: inner.count(disk) for disk in inner._value}

    def _wrong(self, name: str, expected: str) -> ProtocolError:
        return ProtocolError(f"{name!r} is not {expected}: {_shown(self._line)}")


def _attached(fields: _Fields) -> Attached:
    return Attached(fields.text("disk"), fields.text("device"), fields.object("queue"))


def _mounted(fields: _Fields) -> Mounted:
    return Mounted(
        fields.text("mountinfo"),
        fields.text("options"),
        fields.text("super_options"),
        fields.text("type"),
    )


def _inspected(fields: _Fields) -> Inspected:
    return Inspected(fields.text("name"), fields.text("output")[: bounds.MAX_INSPECTED_CHARACTERS])


def _interval(fields: _Fields) -> Interval:
    probe_interval_ms, pauses_ns = fields.probe("probe")
    return Interval(
        name=fields.text("name"),
        measured=fields.flag("measured"),
        wall_ns=fields.count("wall_ns"),
        command_ns=fields.count("command_ns"),
        settle_ns=fields.count("settle_ns"),
        cpu_user_ns=fields.count("cpu_user_ns"),
        cpu_system_ns=fields.count("cpu_system_ns"),
        cpu_kernel_threads_ns=fields.count_or_none("cpu_kernel_threads_ns"),
        cpu_disk_server_ns=fields.count_or_none("cpu_disk_server_ns"),
        program_write_bytes=fields.count("program_write_bytes"),
        program_read_bytes=fields.count("program_read_bytes"),
        space_used_bytes=fields.count_or_none("space_used_bytes"),
        metadata_used_bytes=fields.count_or_none("metadata_used_bytes"),
        sync_calls=fields.count_or_none("sync_calls"),
        sync_times_ns=fields.histogram_or_none("sync_times_ns"),
        probe_interval_ms=probe_interval_ms,
        pauses_ns=pauses_ns,
        counters=fields.counters("counters"),
        settle_write_bytes=fields.counts("settle_write_bytes"),
        unmount_write_bytes=fields.counts("unmount_write_bytes"),
    )


def _failed(fields: _Fields) -> Failed:
    return Failed(
        step=fields.text("step"),
        kind=fields.text("kind"),
        message=fields.text("message"),
        status=fields.status("status"),
        signal=fields.status("signal"),
        kernel=fields.texts("kernel"),
    )


def _done(fields: _Fields) -> Done:
    return Done(fields.object_or_empty("recording"))


_BUILDERS: Mapping[str, Callable[[_Fields], Event]] = {
    "attached": _attached,
    "mounted": _mounted,
    "inspected": _inspected,
    "interval": _interval,
    "failed": _failed,
    "done": _done,
    "hello": lambda fields: Hello(fields.text("agent"), fields.text("kernel")),
    "alive": lambda _: Alive(),
    "output": lambda fields: Output(fields.text("text")),
    "bye": lambda _: Bye(),
}


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
