"""Parser for an agent's events. Its output is untrusted: a damaged stream must become a failed
cell, never an unexpected exception.

docs/cell-protocol.md describes the fields.
"""

import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, PlainValidator, Strict

from fscost import typed
from fscost.lab.cell import bounds

MAX_EVENTS = 10_000
"""Maximum number of events of one cell; a cell has a few for each step."""


def _array(value: object) -> "array[int]":
    if isinstance(value, list) and all(type(each) is int and 0 <= each < 1 << 63 for each in value):
        return array("q", value)
    raise ValueError("is not a list of counts")


Pauses = Annotated[Sequence[int], PlainValidator(_array)]
Histogram = Annotated[
    typed.Tuple[Annotated[tuple[typed.Count, typed.Count], Strict(strict=False)]],
    AfterValidator(lambda pairs: tuple(sorted(pairs))),
]
"""Values in ascending order, each with its count."""
Status = Annotated[int, Field(gt=-(1 << 31), lt=1 << 31)]


class ProtocolError(Exception):
    """The agent violated the protocol."""


class OverdueError(ProtocolError):
    """The cell exceeded its time limit."""


@dataclass(frozen=True)
class Attached(typed.Table):
    """A disk was attached to its block device."""

    disk: str
    device: str
    queue: dict[str, Any]


@dataclass(frozen=True)
class Mounted(typed.Table):
    """Mount as the kernel reports it."""

    type: str
    options: str
    super_options: str
    mountinfo: str


@dataclass(frozen=True)
class Inspected(typed.Table):
    """Output of a tool about the new file system."""

    name: str
    output: str


@dataclass(frozen=True)
class Probe(typed.Table):
    """Pauses of small directory changes."""

    interval_ms: typed.Count
    pauses_ns: Pauses


@dataclass(frozen=True)
class Counters(typed.Table):
    """The kernel's counters of a disk."""

    read_requests: typed.Count
    read_bytes: typed.Count
    write_requests: typed.Count
    write_bytes: typed.Count
    discard_requests: typed.Count
    discard_bytes: typed.Count
    flush_requests: typed.Count


@dataclass(frozen=True, kw_only=True)
class Interval(typed.Table):
    """One interval: mkfs, mount, or a step. `counters` are the kernel's counters of this interval,
    for each disk."""

    name: str
    measured: bool
    wall_ns: typed.Count
    command_ns: typed.Count
    settle_ns: typed.Count
    cpu_user_ns: typed.Count
    cpu_system_ns: typed.Count
    cpu_kernel_threads_ns: typed.Count | None = None
    cpu_disk_server_ns: typed.Count | None = None
    program_write_bytes: typed.Count
    program_read_bytes: typed.Count
    space_used_bytes: typed.Count | None = None
    space_taken_bytes: typed.Count | None = None
    space_overhead_bytes: typed.Count | None = None
    space_reserved_bytes: typed.Count | None = None
    metadata_used_bytes: typed.Count | None = None
    sync_calls: typed.Count | None = None
    outside_sync_calls: typed.Count | None = None
    sync_times_ns: Histogram | None = None
    """Durations of fsync and fdatasync in ascending order, each with its number of calls."""
    probe: Probe | None = None
    counters: typed.Dict[Counters]
    settle_write_bytes: typed.Dict[typed.Count] = field(default_factory=dict)
    unmount_write_bytes: typed.Dict[typed.Count] = field(default_factory=dict)
    """Bytes by disk; empty if the interval had no such part."""

    @property
    def pauses_ns(self) -> Sequence[int]:
        """Pauses that the probe measured."""
        return self.probe.pauses_ns if self.probe else ()


@dataclass(frozen=True, kw_only=True)
class Failed(typed.Table):
    """The agent gave up, with the reason."""

    step: str
    kind: str
    message: str
    status: Status | None = None
    signal: Status | None = None
    kernel: typed.Tuple[str]


@dataclass(frozen=True)
class Done(typed.Table):
    """The cell is complete. `recording` holds the disk server's own totals; None without a
    server."""

    recording: dict[str, Any] | None = None


@dataclass(frozen=True)
class Hello(typed.Table):
    """A guest has started and waits for its plan."""

    agent: str
    kernel: str


@dataclass(frozen=True)
class Alive(typed.Table):
    """A guest is alive and has nothing else to report."""


@dataclass(frozen=True)
class Output(typed.Table):
    """Part of the output of a guest's commands."""

    text: str


@dataclass(frozen=True)
class Bye(typed.Table):
    """A guest is powering off."""


Event = Attached | Mounted | Inspected | Interval | Failed | Done | Hello | Alive | Output | Bye


def parse(line: bytes) -> Event:
    """Parse one line of the agent's output."""
    pauses: array[int] | None = None
    try:
        if len(line) > bounds.MAX_LINE_BYTES:
            line, pauses = bounds.take_pauses(line)
    except ValueError as error:
        raise ProtocolError(f"{error}: {_shown(line)}") from None
    if len(line) > bounds.MAX_LINE_BYTES:
        raise ProtocolError(f"a line longer than {bounds.MAX_LINE_BYTES} bytes: {_shown(line)}")
    try:
        value = json.loads(line.decode(), parse_float=_finite, parse_constant=_finite)
        # A lone surrogate is a legal escape, but cannot be written to a file.
        if b"\\ud" in line.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {_shown(line)} ({error})") from None
    try:
        kind = typed.read(_Tagged, value).event
        if kind not in _KINDS:
            raise ProtocolError(f"unknown event {kind[:40]!r}")
        limit_bytes = bounds.MAX_BYTES.get(kind, bounds.MAX_LINE_BYTES)
        if len(line) > limit_bytes:
            raise ProtocolError(
                f"event {kind!r} of {len(line)} bytes exceeds its limit of {limit_bytes} bytes"
            )
        event: Event = typed.read(_KINDS[kind], value)
    except typed.InvalidError as error:
        raise ProtocolError(f"{error}: {_shown(line)}") from None
    match event:
        case Interval(probe=Probe() as probe) if pauses is not None:
            return replace(event, probe=replace(probe, pauses_ns=pauses))
        case Inspected():
            return replace(event, output=event.output[: bounds.MAX_INSPECTED_CHARACTERS])
    return event


@dataclass(frozen=True)
class _Tagged(typed.Table):
    event: str


_KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def _finite(text: str) -> float:
    """Parse a finite number. Facts are written as JSON again, which has neither infinity nor NaN,
    although Python's parser accepts them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not finite")
    return value


def _shown(line: bytes) -> str:
    """Beginning of a line, safe to print."""
    return repr(line[:120])[1:]
