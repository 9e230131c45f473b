"""Interface of the compiled module (crates/bindings). `make check` compares this file with the
module (stubtest)."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypedDict, final, type_check_only

from typing_extensions import CapsuleType

__all__ = [
    "Array",
    "Batch",
    "Batches",
    "Crash",
    "Explanation",
    "PanicException",
    "Recording",
    "RecordingError",
    "Requests",
    "States",
    "TracedRequests",
    "Workload",
    "__version__",
    "causes",
    "import_dm_log_writes",
    "latency_check",
    "latency_parameters",
    "structures",
    "trace_summaries",
    "trace_workloads",
]

__version__: str

class RecordingError(Exception): ...
class PanicException(BaseException): ...

@type_check_only
class Disk(TypedDict):
    name: str
    size_bytes: int
    logical_block_bytes: int
    physical_block_bytes: int

@type_check_only
class Info(TypedDict):
    version: int
    stripped: str
    begin_unix_ns: int
    file_bytes: int
    frames: int
    events: int
    content_bytes: int
    content_stored_bytes: int
    last_ns: int
    end: str
    disks: list[Disk]

@type_check_only
class Interval(TypedDict):
    name: str
    begin_ns: int
    end_ns: int
    first_write_bytes: int
    detail: str | None
    disks: dict[str, dict[str, int]]

@type_check_only
class Verified(TypedDict):
    whole: bool
    end: str
    damaged: list[str]
    events: int
    content_bytes: int
    content_stored_bytes: int
    disks: dict[str, dict[str, int]]

@type_check_only
class IntervalTimes(TypedDict):
    name: str
    elapsed_s: float
    members: list[dict[str, float]]

@type_check_only
class Times(TypedDict):
    intervals: list[IntervalTimes]
    rows: tuple[int, int, int, int]

@type_check_only
class Histogram(TypedDict):
    buckets: list[tuple[int, int, int]]
    sum_ns: int
    max_ns: int

@type_check_only
class ReplayedDisk(TypedDict):
    busy_ns: int
    read: Histogram
    write: Histogram
    flush: Histogram
    discard: Histogram

@type_check_only
class ReplayedInterval(TypedDict):
    name: str
    recorded_ns: int
    modelled_ns: int
    disks: list[ReplayedDisk]

@type_check_only
class Checkpoint(TypedDict):
    lsn: int
    records: int
    items: int

@type_check_only
class XfsRecovery(TypedDict):
    disk: int
    family: Literal["xfs"]
    head: int
    tail: int
    records: int
    bytes: int
    checkpoints: list[Checkpoint]
    unfinished: list[Checkpoint]

@type_check_only
class Logged(TypedDict):
    tree: int
    inode: int
    path: str | None

@type_check_only
class BtrfsRecovery(TypedDict):
    disk: int
    family: Literal["btrfs"]
    generation: int
    is_sound: bool
    logged_count: int
    logged: list[Logged]

@type_check_only
class WorkloadInfo(TypedDict):
    unit_bytes: int
    disk_bytes: int
    write_bytes: int
    write_units: int
    trim_bytes: int
    flushes: int

@type_check_only
class Replayed(TypedDict, total=False):
    unit_bytes: int
    page_units: int
    block_units: int
    blocks: int
    logical_units: int
    mapped_units: int
    filled_units: int
    varied_units: int
    roaming_units: int
    passes: int
    counted_passes: int
    host_units: int
    trimmed_units: int
    absorbed_units: int
    written_units: int
    copied_units: int
    levelled_units: int
    padded_units: int
    programmed_units: int
    erased_blocks: int
    min_erases: int
    max_erases: int
    worst_block: int
    cold_blocks: int
    mean_erases: float
    erases_variance: float
    is_steady: bool
    nominal_spare: float
    effective_spare: float
    erases: bytes
    charges: list[tuple[int, int, int, int, int, int, int]]

@final
class Recording:
    def __new__(cls, path: str | os.PathLike[str]) -> Self: ...
    def info(self) -> Info: ...
    def intervals(self) -> list[Interval]: ...
    def marks(self) -> list[tuple[int, str, str | None]]: ...
    def requests(self) -> Requests: ...
    def explain(self) -> Explanation: ...
    def explain_and_pack(
        self, descriptor: int, path: str | os.PathLike[str], level: int
    ) -> Explanation: ...
    def workload(
        self,
        disk: int,
        device: Mapping[str, object],
        measured: Sequence[str],
        explanation: Explanation | None = None,
        by: str | None = None,
    ) -> Workload: ...
    def member_workloads(
        self,
        disk: int,
        shape: Mapping[str, object],
        device: Mapping[str, object],
        measured: Sequence[str],
    ) -> list[Workload]: ...
    def times(
        self,
        device: Mapping[str, object],
        array: tuple[int, Mapping[str, object]] | None = None,
    ) -> Times: ...
    def replay(
        self,
        models: Sequence[tuple[str, str]],
        waits: Sequence[str],
        seed: int,
    ) -> list[list[ReplayedInterval]] | None: ...
    def recovery(self, at_ns: int, lost: Sequence[int]) -> list[XfsRecovery | BtrfsRecovery]: ...
    def verify(self) -> Verified: ...
    def export_image(
        self,
        disk: int,
        descriptor: int,
        path: str | os.PathLike[str],
        announce: Callable[[int], object],
        at_ns: int | None = None,
        mark: str | None = None,
    ) -> None: ...
    def strip(
        self, descriptor: int, path: str | os.PathLike[str], names: str, key: bytes
    ) -> int: ...
    def export_dm_log_writes(
        self,
        disk: int,
        descriptor: int,
        path: str | os.PathLike[str],
        announce: Callable[[int], object],
    ) -> int: ...

@final
class Crash:
    def __new__(cls, recording: Recording) -> Self: ...
    def without(self, flushes: Sequence[int]) -> Crash: ...
    def hold(self) -> None: ...
    def cuts(self, begin_ns: int, end_ns: int, most: int) -> list[int]: ...
    def volatile(self, at_ns: int) -> list[int]: ...
    def pending(self, at_ns: int, device: str) -> list[tuple[int, int, int, int]]: ...
    def states(
        self, at_ns: int, device: str, most: int, seed: int
    ) -> list[tuple[str, list[int], str]]: ...
    def enumeration(self, device: str, most_bytes: int) -> States: ...
    def export(
        self,
        at_ns: int,
        device: str,
        kept: Sequence[int],
        disk: int,
        descriptor: int,
        path: str | os.PathLike[str],
    ) -> None: ...

@final
class States:
    def add(self, at_ns: int, most: int, seed: int) -> list[tuple[int, str, bytes]]: ...
    def counts(self) -> tuple[int, int]: ...

@final
class Array:
    def __new__(cls, shape: Mapping[str, object]) -> Self: ...
    def size_bytes(self) -> int: ...
    def rows(self) -> tuple[int, int, int, int]: ...
    def read(self, offset: int, length: int) -> list[tuple[int, str, int, int, int]]: ...
    def write(self, offset: int, length: int) -> list[tuple[int, str, int, int, int]]: ...
    def discard(self, offset: int, length: int) -> list[tuple[int, str, int, int, int]]: ...
    def flush(self) -> list[tuple[int, str, int, int, int]]: ...
    def settle(self) -> list[tuple[int, str, int, int, int]]: ...

@final
class Batch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]: ...

@final
class Requests(Iterator[Batch]):
    def __next__(self) -> Batch: ...
    def intervals(self) -> list[Interval]: ...

@final
class Batches(Iterator[Batch]):
    def __next__(self) -> Batch: ...

@final
class Explanation:
    def sums(
        self,
        several: Sequence[Sequence[str]],
        phases: Sequence[str] | None = None,
        disks: Sequence[str] | None = None,
    ) -> list[Batch]: ...
    def logged(
        self, phases: Sequence[str] | None = None, disks: Sequence[str] | None = None
    ) -> tuple[Batch, Batch]: ...
    @staticmethod
    def summed() -> list[str]: ...
    def __iter__(self) -> Batches: ...
    def phases(self) -> list[str]: ...
    def names(self, by: str) -> list[str]: ...
    def families(self) -> list[str | None]: ...
    def marks(self) -> list[tuple[int, str, str | None]]: ...
    def punched_bytes(self) -> dict[str, int]: ...
    def check_packed(self) -> None: ...

@final
class Workload:
    def info(self) -> WorkloadInfo: ...
    def footprint(self, device: Mapping[str, object]) -> Workload: ...
    def on_disk(self, disk_bytes: int) -> Workload: ...
    def replay(
        self,
        device: Mapping[str, object],
        fill: float,
        max_rounds: int,
        by_tag: bool,
        repeat: str,
    ) -> Replayed: ...

@final
class TracedRequests:
    def __new__(cls, path: str | os.PathLike[str], form: str | None = None) -> Self: ...
    def disks(self) -> list[str]: ...
    def replay(
        self, models: Sequence[tuple[str, str]], waits: Sequence[str], seed: int
    ) -> list[list[ReplayedInterval]]: ...

def trace_workloads(
    path: str | os.PathLike[str], device: Mapping[str, object], form: str | None = None
) -> tuple[str, list[tuple[str, Workload, float]]]: ...
def trace_summaries(
    path: str | os.PathLike[str], form: str | None = None
) -> tuple[str, float, list[tuple[str, dict[str, Any]]]]: ...
def structures() -> list[tuple[str, str, bool]]: ...
def causes() -> list[tuple[str, str]]: ...
def import_dm_log_writes(
    log: str | os.PathLike[str], descriptor: int, path: str | os.PathLike[str]
) -> int: ...
def latency_check(file: str, text: str) -> None: ...
def latency_parameters(
    kind: str,
) -> list[tuple[str, str, float | None, float, float]]: ...
