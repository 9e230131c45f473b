"""Access to recordings, through the native module that reads the format
(docs/recording-format.md)."""

import contextlib
import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fscost import files
from fscost.errors import DefectError, FscostError, HostError, InputError

if TYPE_CHECKING:
    # pyarrow is imported where it is used: the import takes 0.2 s, while the native module can
    # already work.
    import pyarrow as pa

    from fscost._native import (
        BtrfsRecovery,
        Crash,
        Explanation,
        Info,
        Interval,
        Recording,
        Requests,
        TracedRequests,
        Verified,
        Workload,
        XfsRecovery,
    )

_MAGIC = b"FSCOSTRC"
COMPRESSION = "zstd"
PACKING_LEVEL = 3
"""zstd level of recordings that are kept."""
VERIFY = "`fscost recording verify` says how much of it is readable"
"""Remedy for a damaged recording."""
_REMEDIES = {
    "io": "check the path, its permissions and the space left",
    "host-disk-full": "free some space there, or name another folder",
    "format": (
        "name a recording: a run keeps them as cells/…/recording.fscost (of another tool's trace,"
        " `fscost explain`, `fscost wear` and `fscost replay` read the requests, and `fscost"
        " recording import` makes a recording if it is a dm-log-writes log)"
    ),
    "header": (
        "its header is damaged, so none of it can be read: restore it from a copy, or record it"
        " again"
    ),
    "malformed": "check that place in the file, or name another format with --format",
    "corrupt": VERIFY,
    "too-large": "name a shorter one (docs/limits.md)",
}
"""Remedies by kind of the native module's error. A kind that is not listed has none: it reports a
caller's mistake."""
Announce = Callable[[int], object]
"""Callback that gets the size of an export in bytes before it begins."""


@dataclass(frozen=True)
class RecordedInterval:
    """Bytes that reached each disk between two marks. `first_write_bytes` is the part that went to
    places never written before. `virtual_ns`: the beginning by an emulated guest's clock."""

    name: str
    begin_ns: int
    end_ns: int
    disks: Mapping[str, Mapping[str, int]]
    first_write_bytes: int = 0
    virtual_ns: int | None = None


def require_native() -> None:
    """Raise HostError if this installation cannot read recordings. Callers check before the first
    cell, not after it."""
    try:
        from fscost import _native  # noqa: F401
    except ImportError as error:
        raise HostError(
            f"the compiled part of fscost is missing ({error})", "run `make setup`"
        ) from None


def structures() -> list[tuple[str, str, bool]]:
    """List the structures: name, meaning, and True if they are part of a journal or log."""
    require_native()
    from fscost import _native

    return _native.structures()


def causes() -> list[tuple[str, str]]:
    """List the causes: name and meaning."""
    require_native()
    from fscost import _native

    return _native.causes()


@contextlib.contextmanager
def opened(recording: Path) -> "Iterator[Recording]":
    """Open a recording through the native module. Native errors become errors for the user."""
    with errors(recording):
        yield _open(recording)


@contextlib.contextmanager
def opened_trace(
    path: Path, device: Mapping[str, object], form: str | None
) -> "Iterator[tuple[str, list[tuple[str, Workload, float]]]]":
    """Read another tool's trace (docs/traces.md). Yield its format and, for each disk, its name,
    its requests for this device, and its duration in seconds."""
    with errors(
        path,
        "name a recording, or a trace in one of the formats of docs/traces.md (--format names one)",
    ):
        from fscost import _native

        try:
            found = _native.trace_workloads(str(path), device, form)
        except ValueError as error:
            raise InputError(f"{path}: {error}", "see docs/traces.md") from None
        yield found


@contextlib.contextmanager
def traced_requests(path: Path, form: str | None) -> "Iterator[TracedRequests]":
    """Read the requests of another tool's trace (docs/traces.md), to be replayed on models."""
    with errors(
        path,
        "name a recording, or a trace in one of the formats of docs/traces.md (--format names one)",
    ):
        from fscost import _native

        yield _native.TracedRequests(str(path), form)


def is_recording(path: Path) -> bool:
    """True if the file has the magic bytes of a recording (docs/recording-format.md)."""
    try:
        with files.open_regular(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", "name a recording, a run's folder or a trace"
        ) from error


def trace_summaries(
    path: Path, form: str | None
) -> "tuple[str, float, list[tuple[str, dict[str, Any]]]] | None":
    """Sum the requests of another tool's trace (docs/traces.md): its format, its seconds, and the
    numbers of each disk. Return None if its format is neither named nor recognised."""
    with errors(path, "name a trace in one of the formats of docs/traces.md (--format names one)"):
        from fscost import _native

        try:
            return _native.trace_summaries(str(path), form)
        except _native.RecordingError as error:
            if form is None and error.args[1:] == ("format",):
                return None
            raise


class Explaining:
    """Explanation of a recording, computed on background threads after `start`. The constructor
    raises InputError if the file is not a recording."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        with errors(recording):
            self.source = _open(recording)
        self.not_packed: str | None = None
        self._found: Explanation | None = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="explain", daemon=True)

    @property
    def is_started(self) -> bool:
        """True after `start` was called."""
        return self._thread.ident is not None

    def start(self) -> "Explaining":
        """Start the explanation unless it is already running; return self."""
        if not self.is_started:
            self._thread.start()
        return self

    def _run(self) -> None:
        try:
            with errors(self.recording):
                self._found = self.source.explain()
        except BaseException as error:  # noqa: BLE001 # Raised where it is waited for.
            self._failed = error

    def pack(self) -> "Explaining":
        """Explain on this thread, so that an interrupt leaves nothing behind, and compress the
        recording in place in the same pass; return self.

        If the process is killed meanwhile, the file is either the old or the new recording,
        complete. A failure to compress is only noted in `not_packed`: an uncompressed recording is
        just as usable.
        """
        with errors(self.recording):
            try:
                with (
                    files.replacing(self.recording, follow=False) as packed,
                    errors(self.recording),
                ):
                    path = str(self.recording)
                    self._found = self.source.explain_and_pack(packed.fileno(), path, PACKING_LEVEL)
                    self._found.check_packed()
            except FscostError as error:
                self.not_packed = str(error)
            if self._found is None:
                self._found = self.source.explain()
        return self

    def result(self) -> "Explanation":
        """Wait for the native explanation and return it."""
        if self.is_started:
            self._thread.join()
        if self._failed is not None:
            raise self._failed
        assert self._found is not None, "the thread ends with either"
        return self._found


def info(recording: Path) -> "Info":
    """Return the disks, marks and totals of a recording."""
    with errors(recording):
        return _open(recording).info()


def intervals(recording: Path) -> list[RecordedInterval]:
    """Return the intervals between marks, in order. Each disk's totals are recomputed from the
    requests themselves."""
    with errors(recording):
        return _intervals(_open(recording).intervals())


def _intervals(found: "Sequence[Interval]") -> list[RecordedInterval]:
    return [
        RecordedInterval(name, begin, end, each["disks"], first, _virtual_ns(each["detail"]))
        for each in found
        for name, begin, end in [(each["name"], each["begin_ns"], each["end_ns"])]
        for first in [each["first_write_bytes"]]
    ]


def _virtual_ns(detail: str | None) -> int | None:
    """Return the time of an emulated guest in the details of a mark, which are untrusted."""
    found = json.loads(detail) if detail else None
    value = found.get("virtual_ns") if isinstance(found, dict) else None
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def verify(recording: Path) -> "Verified":
    """Read and check every byte. The result has `whole`, how the recording ends, what is damaged,
    and totals of the readable part."""
    with errors(recording):
        return _open(recording).verify()


def strip(recording: Path, out: Path, names: str, announce: Announce = lambda _: None) -> int:
    """Write a copy of the recording without file contents, for sharing; return its size. The key of
    the digests is discarded."""
    with errors(recording), files.creating(out) as file:
        source = _open(recording)
        # Digests do not compress as well as the content they replace.
        _refuse_too_large(file, out, announce)(source.info()["content_bytes"])
        return source.strip(file.fileno(), str(out), names, os.urandom(32))


def export_image(
    recording: Path,
    disk: str,
    image: Path,
    at: str | None = None,
    announce: Announce = lambda _: None,
) -> None:
    """Export a disk as a sparse file, in its state at the end or at `at`: a mark's name, or seconds
    since the recording began."""
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
    """Convert an instant to nanoseconds since the recording began. `at` is a mark's name (the first
    mark with that name counts) or a number of seconds."""
    for at_ns, name in marks:
        if name == at:
            return at_ns
    try:
        found = round(float(at) * 1e9)
    except (ValueError, OverflowError):
        found = -1
    if not 0 <= found < 1 << 63:
        raise InputError(
            f"{at!r} is neither a mark of {recording} nor a number of seconds",
            "give a number of seconds, or one of its marks:"
            f" {', '.join(name for _, name in marks)}",
        )
    return found


def export_dm_log_writes(
    recording: Path, disk: str, log: Path, announce: Announce = lambda _: None
) -> int:
    """Export one disk's requests as a dm-log-writes log; return the number of entries."""
    with errors(recording), files.creating(log) as file:
        source = _open(recording)
        index, announced = (
            _disk_index(source, recording, disk),
            _refuse_too_large(file, log, announce),
        )
        return source.export_dm_log_writes(index, file.fileno(), str(log), announced)


def import_dm_log_writes(log: Path, recording: Path) -> int:
    """Convert a dm-log-writes log to a recording; return the number of entries."""
    with (
        errors(log, "name a log that the kernel's dm-log-writes target wrote"),
        files.creating(recording) as file,
    ):
        from fscost import _native

        return _native.import_dm_log_writes(str(log), file.fileno(), str(recording))


def _disk_index(source: "Recording", recording: Path, disk: str) -> int:
    names = [each["name"] for each in source.info()["disks"]]
    if disk not in names:
        raise InputError(
            f"{recording} has no disk {disk!r}", f"name one of its disks: {', '.join(names)}"
        )
    return names.index(disk)


def _refuse_too_large(file: IO[bytes], path: Path, announce: Announce) -> Announce:
    """Return a callback that refuses an export larger than the free space, then calls `announce`.
    The check is needed because a few bytes of a recording can expand to terabytes of zeros."""

    def announced(size_bytes: int) -> None:
        files.require_space(file, path, size_bytes)
        announce(size_bytes)

    return announced


def write_requests(recording: Path, table: Path) -> tuple[int, list[RecordedInterval]]:
    """Write every request of the recording, without its content, to a Parquet table. Return the
    number of requests and, from the same pass, the intervals. No partial table remains after a
    failure."""
    import pyarrow.parquet as pq

    rows = 0
    with errors(recording), files.creating(table) as file:
        requests = _open(recording).requests()
        with pq.ParquetWriter(file, _requests_schema(), compression=COMPRESSION) as writer:
            for batch in _batches(requests):
                writer.write_batch(batch)
                rows += batch.num_rows
        return rows, _intervals(requests.intervals())


def recovery(
    recording: Path, at_ns: int, lost: Sequence[int] = ()
) -> "list[XfsRecovery | BtrfsRecovery]":
    """Describe the recovery that mounting the disks would begin with, for each file system
    (crates/bindings/src/recovery.rs). The disks have the state of the instant `at_ns`, without the
    events `lost` (ascending)."""
    with errors(recording):
        return _open(recording).recovery(at_ns, lost)


def crash(recording: Path, without: Sequence[int] = ()) -> "Crash":
    """Read a recording whose disks lose their power. `without` are the numbers of flushes that are
    left out, for a control."""
    return crashes(recording)(tuple(without))


def crashes(recording: Path) -> "Callable[[tuple[int, ...]], Crash]":
    """Open a recording once, and return what reads it without the flushes that it is given."""
    from fscost import _native

    with opened(recording) as source:
        whole = _native.Crash(source)
    return cache(lambda without: whole.without(list(without)) if without else whole)


def requests(recording: Path) -> "Iterator[pa.RecordBatch]":
    """Yield every request in the order in which it took effect, without its content. `event` is its
    number in the recording, counting marks. `latency_ns` is the time from the submission until the
    disk's model, or the real device, had completed the request, and `late_ns` from there until the
    reply was sent; both are null for other disks."""
    with errors(recording):
        yield from _batches(_open(recording).requests())


def _requests_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            *(pa.field(name, pa.uint64()) for name in ("event", "submit_ns", "complete_ns")),
            pa.field("disk", pa.dictionary(pa.int32(), pa.string())),
            pa.field("op", pa.dictionary(pa.int8(), pa.string())),
            *(pa.field(name, pa.uint64()) for name in ("offset", "length")),
            pa.field("fua", pa.bool_()),
            *(pa.field(name, pa.uint64()) for name in ("latency_ns", "late_ns")),
        ]
    )


def _batches(requests: "Requests") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    return (pa.record_batch(batch) for batch in requests)


def _open(recording: Path) -> "Recording":
    from fscost import _native

    try:
        return _native.Recording(str(recording))
    except _native.RecordingError as error:
        # Only the header is checked here. If it is damaged, no other part can be read.
        if error.args[1:] == ("corrupt",):
            raise _native.RecordingError(error.args[0], "header") from None
        raise


@contextlib.contextmanager
def errors(recording: Path, other_format: str = "") -> Iterator[None]:
    """Convert errors and panics of the native module to errors for the user that name the file. A
    plain `except Exception` would not catch a panic.

    `other_format` is the remedy for a file in the wrong format. By default, the remedy asks for a
    recording.
    """
    require_native()
    from fscost import _native

    try:
        yield
    except _native.RecordingError as error:
        text, kind = (*error.args, "")[:2]
        # Errors from the operating system already name the file, which may not be the recording.
        is_named = kind in ("io", "host-disk-full") or text.startswith(
            (f"{recording}: ", f"{recording} ")
        )
        remedy = other_format if other_format and kind == "format" else _REMEDIES.get(kind)
        raise InputError(text if is_named else f"{recording}: {text}", remedy) from None
    except _native.PanicException as error:
        raise DefectError(
            f"{recording}: a bug in fscost ({error})", how_to_report(recording)
        ) from None
    except OSError as error:
        raise InputError(str(error), "check the path, its permissions and the space left") from None


def how_to_report(recording: Path) -> str:
    """Return the remedy for a defect of fscost itself."""
    return (
        "please report it with the recording; first run `fscost recording strip"
        f" {shlex.quote(str(recording))} to-send.fscost` to remove file contents"
    )
