"""From a recording to numbers, and the proof that they are the kernel's: the bytes recorded in each interval equal its counters, exactly.

Thin over the native module, which reads the format (docs/recording-format.md).
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fscost.errors import HostError, InputError

COMPRESSION = "zstd"
OPS = ["read", "write", "flush", "discard", "write_zeroes", "punch"]
"""By their numbers in the recording (docs/recording-format.md)."""


@dataclass(frozen=True)
class RecordedInterval:
    """What reached each disk between two marks."""

    name: str
    begin_ns: int
    end_ns: int
    disks: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class KernelInterval:
    """What the kernel counted for each disk in the same stretch."""

    name: str
    disks: Mapping[str, Mapping[str, int]]


def info(recording: Path) -> dict[str, Any]:
    """Disks, marks and totals of a recording."""
    with _errors(recording):
        return dict(_open(recording).info())


def intervals(recording: Path) -> list[RecordedInterval]:
    """The marks' intervals, in order, with each disk's totals recomputed from the requests themselves."""
    with _errors(recording):
        found = _open(recording).intervals()
        return [RecordedInterval(each["name"], each["begin_ns"], each["end_ns"], each["disks"]) for each in found]


def differences(recorded: Sequence[RecordedInterval], kernel: Sequence[KernelInterval]) -> list[str]:
    """Where recording and kernel disagree, one sentence each with both numbers; empty when bytes are conserved.

    The recording has two intervals more: before the first mark, and after the mark `end`. Whoever looks at a new block device (udev) may read in
    them, but a byte written there would be charged to no interval.
    """
    names = [interval.name for interval in recorded]
    expected = ["before", *(interval.name for interval in kernel), "end"]
    if names != expected:
        return [f"the recording's intervals are {names}, the kernel's {expected}"]
    before, *recorded, after = recorded
    stray = [(each.name, disk, _changed_bytes(totals)) for each in (before, after) for disk, totals in each.disks.items()]
    found = [f"{name}, disk {disk}: {count} bytes changed outside of every interval" for name, disk, count in stray if count]
    for ours, theirs in zip(recorded, kernel, strict=True):
        if ours.disks.keys() != theirs.disks.keys():
            found.append(f"{ours.name}: the recording has disks {sorted(ours.disks)}, the kernel {sorted(theirs.disks)}")
            continue
        for disk, counters in theirs.disks.items():
            found += [f"{ours.name}, disk {disk}: {text}" for text in _disk_differences(ours.disks[disk], counters)]
    return found


def _changed_bytes(recorded: Mapping[str, int]) -> int:
    return recorded["write_bytes"] + recorded["zero_bytes"] + recorded["punch_bytes"] + recorded["discard_bytes"]


def _disk_differences(recorded: Mapping[str, int], kernel: Mapping[str, int]) -> Iterator[str]:
    if recorded["read_bytes"] != kernel["read_bytes"]:
        yield f"{recorded['read_bytes']} bytes read in the recording, {kernel['read_bytes']} by the kernel's counter"
    # A loop device sends discards and write-zeroes that may unmap as the same hole punch, so only their sum can be compared
    # (drivers/block/loop.c, lo_fallocate); the kernel counts write-zeroes as written.
    written = recorded["write_bytes"] + recorded["zero_bytes"]
    changed = _changed_bytes(recorded)
    counted = kernel["write_bytes"] + kernel["discard_bytes"]
    if changed != counted:
        yield f"{changed} bytes written, zeroed and discarded in the recording, {counted} by the kernel's counters"
    elif not written <= kernel["write_bytes"] <= written + recorded["punch_bytes"]:
        yield (
            f"{written} bytes written and {recorded['punch_bytes']} punched in the recording, "
            f"which cannot be {kernel['write_bytes']} written by the kernel's counter"
        )


def write_requests(recording: Path, table: Path) -> int:
    """Every request of the recording, without its content, as a Parquet table; returns how many. On failure no part of it stays."""
    rows = 0
    try:
        with _errors(recording), contextlib.ExitStack() as stack:
            writer: pq.ParquetWriter | None = None
            for batch in _batches(recording):
                if writer is None:
                    writer = stack.enter_context(pq.ParquetWriter(table, batch.schema, compression=COMPRESSION))
                writer.write_batch(batch)
                rows += batch.num_rows
    except BaseException:
        table.unlink(missing_ok=True)
        raise
    return rows


def _batches(recording: Path) -> Iterator[pa.RecordBatch]:
    source = _open(recording)
    disks = pa.array([disk["name"] for disk in source.info()["disks"]])
    for columns in source.requests():
        rows = len(columns["op"])

        def column(name: str, kind: pa.DataType, columns: Mapping[str, bytes] = columns, rows: int = rows) -> pa.Array:
            return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(columns[name])])

        disk = column("disk", pa.uint16()).cast(pa.int32())
        op = column("op", pa.uint8()).cast(pa.int8())
        yield pa.record_batch(
            {
                "submit_ns": column("submit_ns", pa.uint64()),
                "complete_ns": column("complete_ns", pa.uint64()),
                "disk": pa.DictionaryArray.from_arrays(disk, disks),
                "op": pa.DictionaryArray.from_arrays(op, pa.array(OPS)),
                "offset": column("offset", pa.uint64()),
                "length": column("length", pa.uint64()),
                "fua": column("fua", pa.uint8()).cast(pa.bool_()),
            }
        )


def _native() -> Any:
    """The one place that touches the compiled module, so that everything else can be imported and tested without it."""
    try:
        from fscost import _native
    except ImportError as error:
        raise HostError(f"the compiled part of fscost is missing ({error})", "run `make setup`") from None
    return _native


def _open(recording: Path) -> Any:
    return _native().Recording(str(recording))


@contextlib.contextmanager
def _errors(recording: Path) -> Iterator[None]:
    """The native module's own error becomes one that a person sees, naming the file."""
    recording_error = _native().RecordingError
    try:
        yield
    except recording_error as error:
        raise InputError(f"{recording}: {error}", "the recording is cut short or damaged; run the cell again") from None
