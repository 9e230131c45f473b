"""Sums of the requests of another tool's trace, which has no contents to explain."""

from dataclasses import dataclass
from pathlib import Path

from fscost import capture


@dataclass(frozen=True)
class TracedDisk:
    """Requests of one disk of a trace. `sequential`: writes that begin where one of the last 16
    writes ended. `again`: bytes written to blocks of 4 KiB that the trace had written before, and
    `distinct`: the size of all blocks that it writes, and `touched`: the same with each block as
    often as a write touches it; None if they have more than 4 TiB.
    `write_sizes`: largest length (a power of two), requests and bytes."""

    name: str
    read_requests: int
    read_bytes: int
    write_requests: int
    write_bytes: int
    discard_requests: int
    discard_bytes: int
    zero_requests: int
    zero_bytes: int
    flushes: int
    fua_writes: int
    sequential_write_bytes: int
    again_write_bytes: int | None
    distinct_write_bytes: int | None
    touched_write_bytes: int | None
    write_sizes: list[tuple[int, int, int]]


@dataclass(frozen=True)
class Traced:
    """Another tool's trace: its format, the seconds from its first line to its last, and its
    disks."""

    format: str
    duration_s: float
    disks: list[TracedDisk]


def traced(path: Path, form: str | None = None) -> Traced | None:
    """Sum the requests of another tool's trace (docs/traces.md). Return None if its format is
    neither named nor recognised."""
    found = capture.trace_summaries(path, form)
    if found is None:
        return None
    name, duration_s, disks = found
    return Traced(name, duration_s, [TracedDisk(disk, **each) for disk, each in disks])
