"""From a recording to numbers, and the proof that they are the kernel's: the bytes recorded in each
interval equal its counters, exactly.

Thin over the native module, which reads the format (docs/recording-format.md).
"""

import contextlib
import os
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from fscost import files
from fscost.errors import DefectError, HostError, InputError

if TYPE_CHECKING:
    # Where it is used, it is imported: it takes 0.2 s, in which the native module can be at work.
    import pyarrow as pa

COMPRESSION = "zstd"
VERIFY = "`fscost recording verify` says how much of it is readable"
"""What to do about a recording that is damaged."""
_REMEDIES = {
    "io": "check the path, its permissions and the space left",
    "host-disk-full": "make room there, or name another place",
    "format": "name a recording: a run keeps them as cells/…/recording.fscost",
    "header": "its header is damaged, so nothing of it can be read: restore it from a copy, or record it again",
    "malformed": "check that place in the file, or name another format with --format",
    "corrupt": VERIFY,
}
"""By the kind of the native module's error; nothing helps with what a caller may not ask for."""
OPS = ["read", "write", "flush", "discard", "write_zeroes", "punch"]
"""By their numbers in the recording (docs/recording-format.md)."""
Announce = Callable[[int], object]
"""Hears how many bytes an export will take, before it begins."""


@dataclass(frozen=True)
class RecordedInterval:
    """What reached each disk between two marks; `first_write_bytes` of it to places never written
    before."""

    name: str
    begin_ns: int
    end_ns: int
    disks: Mapping[str, Mapping[str, int]]
    first_write_bytes: int = 0


@dataclass(frozen=True)
class KernelInterval:
    """What the kernel counted for each disk in the same stretch."""

    name: str
    disks: Mapping[str, Mapping[str, int]]


class MoreColumns(Protocol):
    """What is known of a recording's requests beside what is recorded."""

    def schema(self, recorded: "pa.Schema") -> "pa.Schema":
        """The recorded columns and these."""
        ...

    def beside(self, batch: "pa.RecordBatch", first: int) -> "pa.RecordBatch":
        """A batch with these columns; its first request is the recording's `first`th."""
        ...


def require_native() -> None:
    """Raise HostError when recordings cannot be read here: better before the first cell than after
    it."""
    _native()


def structures() -> list[tuple[str, str, bool]]:
    """What a written block can be: name, meaning, whether it is part of a journal or log."""
    return list(_native().structures())


def causes() -> list[tuple[str, str]]:
    """Why it can have been written: name, meaning."""
    return list(_native().causes())


@contextlib.contextmanager
def opened(recording: Path) -> Iterator[Any]:
    """The native recording, for those that look into it; its errors become those that a person
    sees."""
    with errors(recording):
        yield _open(recording)


@contextlib.contextmanager
def opened_trace(
    path: Path, device: dict[str, Any], form: str | None
) -> Iterator[tuple[str, list[tuple[str, Any, float]]]]:
    """A trace of another tool (docs/traces.md): its format, and of each disk the name, the requests
    for this device, and seconds."""
    with errors(
        path,
        "name a recording, or a trace in one of the formats of docs/traces.md (--format names one)",
    ):
        try:
            found = _native().trace_workloads(str(path), device, form)
        except ValueError as error:
            raise InputError(f"{path}: {error}", "see docs/traces.md") from None
        yield found


class Explaining:
    """A recording that is explained on threads of its own once it was started. Raises InputError for
    what is no recording."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        with errors(recording):
            self.source = _open(recording)
        self._found: Any = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="explain", daemon=True)

    def start(self) -> "Explaining":
        """Begin; returns itself."""
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            with errors(self.recording):
                self._found = self.source.explain()
        except BaseException as error:  # noqa: BLE001 # Raised where it is waited for.
            self._failed = error

    def result(self) -> Any:
        """The native explanation, once it is there."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return self._found


def info(recording: Path) -> dict[str, Any]:
    """Disks, marks and totals of a recording."""
    with errors(recording):
        return dict(_open(recording).info())


def intervals(recording: Path) -> list[RecordedInterval]:
    """The marks' intervals, in order, with each disk's totals recomputed from the requests
    themselves."""
    with errors(recording):
        return _intervals(_open(recording).intervals())


def _intervals(found: Sequence[Mapping[str, Any]]) -> list[RecordedInterval]:
    return [
        RecordedInterval(
            each["name"], each["begin_ns"], each["end_ns"], each["disks"], each["first_write_bytes"]
        )
        for each in found
    ]


def verify(recording: Path) -> dict[str, Any]:
    """Every byte read and checked: `whole`, how it ends, what is damaged, totals of what is
    readable."""
    with errors(recording):
        return dict(_open(recording).verify())


def pack(recording: Path, level: int = 3) -> None:
    """Compress a finished recording in its place; whoever is killed meanwhile leaves the one or the
    other."""
    with errors(recording), files.replacing(recording) as packed:
        _open(recording).pack(packed.fileno(), str(recording), level)


def strip(recording: Path, out: Path, names: str, announce: Announce = lambda _: None) -> int:
    """The recording without the contents of files, to be shared; returns its size. The key of its
    digests is thrown away."""
    with errors(recording), files.creating(out) as file:
        source = _open(recording)
        # Digests cannot be compressed as what they stand for could.
        _refuse_too_large(file, out, announce)(source.info()["content_bytes"])
        return int(source.strip(file.fileno(), str(out), names, os.urandom(32)))


def export_image(
    recording: Path,
    disk: str,
    image: Path,
    at: str | None = None,
    announce: Announce = lambda _: None,
) -> None:
    """The disk as a sparse file, at the end or at `at`: a mark's name, or seconds since the
    recording began."""
    with errors(recording), files.creating(image) as file:
        source = _open(recording)
        marks = [(at_ns, name) for at_ns, name, _ in source.marks()]
        named = at in [name for _, name in marks]
        at_ns = None if at is None or named else instant_ns(recording, marks, at)
        index, announced = (
            _disk_index(source, recording, disk),
            _refuse_too_large(file, image, announce),
        )
        source.export_image(
            index, file.fileno(), str(image), announced, at_ns, at if named else None
        )


def instant_ns(recording: Path, marks: Sequence[tuple[int, str]], at: str) -> int:
    """Nanoseconds since the recording began: of the first mark of this name, or of a number of
    seconds."""
    for at_ns, name in marks:
        if name == at:
            return at_ns
    try:
        found = round(float(at) * 1e9)
    except (ValueError, OverflowError):
        found = -1
    if not 0 <= found < 1 << 63:
        raise InputError(
            f"{at!r} is no instant of {recording}",
            f"a number of seconds, or one of its marks: {', '.join(name for _, name in marks)}",
        )
    return found


def export_dm_log_writes(
    recording: Path, disk: str, log: Path, announce: Announce = lambda _: None
) -> int:
    """One disk's requests as a log of dm-log-writes; returns its number of entries."""
    with errors(recording), files.creating(log) as file:
        source = _open(recording)
        index, announced = (
            _disk_index(source, recording, disk),
            _refuse_too_large(file, log, announce),
        )
        return int(source.export_dm_log_writes(index, file.fileno(), str(log), announced))


def import_dm_log_writes(log: Path, recording: Path) -> int:
    """A recording of a dm-log-writes log; returns its number of entries."""
    with (
        errors(log, "name a log that the kernel's dm-log-writes target wrote"),
        files.creating(recording) as file,
    ):
        return int(_native().import_dm_log_writes(str(log), file.fileno(), str(recording)))


def _disk_index(source: Any, recording: Path, disk: str) -> int:
    names = [each["name"] for each in source.info()["disks"]]
    if disk not in names:
        raise InputError(f"{recording} has no disk {disk!r}", f"its disks are {', '.join(names)}")
    return names.index(disk)


def _refuse_too_large(file: IO[bytes], path: Path, announce: Announce) -> Announce:
    """A few bytes of a recording can stand for terabytes of zeros."""

    def announced(size_bytes: int) -> None:
        files.require_space(file, path, size_bytes)
        announce(size_bytes)

    return announced


def differences(
    recorded: Sequence[RecordedInterval], kernel: Sequence[KernelInterval]
) -> list[str]:
    """Where recording and kernel disagree, one sentence each with both numbers; empty when bytes
    are conserved.

    The recording has two intervals more. What comes before the first mark (udev looks at new block
    devices) is counted into the first interval, as
    the agent does; after the mark `end` somebody may read, but a byte changed there would be
    charged to no interval.
    """
    names = [interval.name for interval in recorded]
    expected = ["before", *(interval.name for interval in kernel), "end"]
    if names != expected:
        return [f"the recording's intervals are {names}, the kernel's {expected}"]
    before, first, *others, after = recorded
    recorded = [_joined(before, first), *others]
    stray = {disk: _changed_bytes(totals) for disk, totals in after.disks.items()}
    found = [
        f"disk {disk}: {count} bytes changed after the end of the last interval"
        for disk, count in stray.items()
        if count
    ]
    for ours, theirs in zip(recorded, kernel, strict=True):
        if ours.disks.keys() != theirs.disks.keys():
            found.append(
                f"{ours.name}: the recording has disks {sorted(ours.disks)}, the kernel {sorted(theirs.disks)}"
            )
            continue
        for disk, counters in theirs.disks.items():
            found += [
                f"{ours.name}, disk {disk}: {text}"
                for text in _disk_differences(ours.disks[disk], counters)
            ]
    return found


def _joined(before: RecordedInterval, first: RecordedInterval) -> RecordedInterval:
    disks = {
        disk: {name: count + before.disks[disk][name] for name, count in totals.items()}
        for disk, totals in first.disks.items()
    }
    return RecordedInterval(first.name, before.begin_ns, first.end_ns, disks)


def _changed_bytes(recorded: Mapping[str, int]) -> int:
    return (
        recorded["write_bytes"]
        + recorded["zero_bytes"]
        + recorded["punch_bytes"]
        + recorded["discard_bytes"]
    )


def _disk_differences(recorded: Mapping[str, int], kernel: Mapping[str, int]) -> Iterator[str]:
    if recorded["read_bytes"] != kernel["read_bytes"]:
        yield f"{recorded['read_bytes']} bytes read in the recording, {kernel['read_bytes']} by the kernel's counter"
    # A loop device sends discards and write-zeroes that may unmap as the same hole punch, so only
    # their sum can be compared
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


def write_requests(
    recording: Path, table: Path, more: "MoreColumns | None" = None
) -> tuple[int, list[RecordedInterval]]:
    """Every request of the recording, without its content, as a Parquet table; returns how many,
    and from the same walk the intervals. On failure no part
    of the table stays."""
    import pyarrow.parquet as pq

    rows = 0
    schema = _requests_schema() if more is None else more.schema(_requests_schema())
    with (
        errors(recording),
        files.creating(table) as file,
        pq.ParquetWriter(file, schema, compression=COMPRESSION) as writer,
    ):
        source = _open(recording)
        requests = source.requests()
        for batch in _batches(source, requests):
            writer.write_batch(batch if more is None else more.beside(batch, rows))
            rows += batch.num_rows
        return rows, _intervals(requests.intervals())


def recovery(recording: Path, at_ns: int, lost: Sequence[int] = ()) -> list[dict[str, Any]]:
    """What mounting the disks as they were at an instant would begin with, had these events
    (ascending) not reached them; a dictionary for each
    file system (crates/bindings/src/recovery.rs)."""
    with errors(recording):
        return list(_open(recording).recovery(at_ns, list(lost)))


def requests(recording: Path) -> "Iterator[pa.RecordBatch]":
    """Every request, in the order of completion, without its content; `event` is its number in the
    recording, marks counted."""
    with errors(recording):
        source = _open(recording)
        yield from _batches(source, source.requests())


def _requests_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            *(pa.field(name, pa.uint64()) for name in ("event", "submit_ns", "complete_ns")),
            pa.field("disk", pa.dictionary(pa.int32(), pa.string())),
            pa.field("op", pa.dictionary(pa.int8(), pa.string())),
            *(pa.field(name, pa.uint64()) for name in ("offset", "length")),
            pa.field("fua", pa.bool_()),
        ]
    )


def _batches(source: Any, requests: Any) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    disks = pa.array([disk["name"] for disk in source.info()["disks"]])
    for columns in requests:
        rows = len(columns["op"])

        def column(
            name: str, kind: "pa.DataType", columns: Mapping[str, bytes] = columns, rows: int = rows
        ) -> "pa.Array":
            return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(columns[name])])

        disk = column("disk", pa.uint16()).cast(pa.int32())
        op = column("op", pa.uint8()).cast(pa.int8())
        yield pa.record_batch(
            {
                "event": column("event", pa.uint64()),
                "submit_ns": column("submit_ns", pa.uint64()),
                "complete_ns": column("complete_ns", pa.uint64()),
                "disk": pa.DictionaryArray.from_arrays(disk, disks),
                "op": pa.DictionaryArray.from_arrays(op, pa.array(OPS)),
                "offset": column("offset", pa.uint64()),
                "length": column("length", pa.uint64()),
                "fua": column("fua", pa.uint8()).cast(pa.bool_()),
            },
            schema=_requests_schema(),
        )


def _native() -> Any:
    """The one place that touches the compiled module, so that everything else can be imported and
    tested without it."""
    try:
        from fscost import _native
    except ImportError as error:
        raise HostError(
            f"the compiled part of fscost is missing ({error})", "run `make setup`"
        ) from None
    return _native


def _open(recording: Path) -> Any:
    native = _native()
    try:
        return native.Recording(str(recording))
    except native.RecordingError as error:
        # Only the header is checked here: without it no other part can be read.
        if error.args[1:] == ("corrupt",):
            raise native.RecordingError(error.args[0], "header") from None
        raise


@contextlib.contextmanager
def errors(recording: Path, other_format: str = "") -> Iterator[None]:
    """The native module's own error becomes one that a person sees, naming the file; so does its
    panic, which no `except Exception` would catch.

    `other_format` is the remedy for a file that is not what it should be; a recording, unless it
    says more.
    """
    native = _native()
    try:
        yield
    except native.RecordingError as error:
        text, kind = (*error.args, "")[:2]
        # What the operating system refused names the file already, which may be another than the
        # recording.
        is_named = kind in ("io", "host-disk-full") or text.startswith(
            (f"{recording}: ", f"{recording} ")
        )
        remedy = other_format if other_format and kind == "format" else _REMEDIES.get(kind)
        raise InputError(text if is_named else f"{recording}: {text}", remedy) from None
    except native.PanicException as error:
        raise DefectError(
            f"{recording}: a defect of fscost ({error})", how_to_report(recording)
        ) from None
    except OSError as error:
        raise InputError(str(error), "check the path, its permissions and the space left") from None


def how_to_report(recording: Path) -> str:
    """What a person can do about a defect."""
    return f"please report it, with the recording; `fscost recording strip {shlex.quote(str(recording))} to-send.fscost` takes the contents of files out"
