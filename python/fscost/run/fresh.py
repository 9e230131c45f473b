"""How much of what a cell wrote went to places never written before. A file system that overwrites in place soon writes nothing there; one that writes
as a log does so until it has come round the disk."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fscost import capture
from fscost.errors import FscostError
from fscost.lab.base import CellResult, Sample

METRIC = "device_fresh_write_bytes"
_PIECE_BYTES = 4096
_LARGEST_DISK_BYTES = 1 << 40
"""One byte of memory is kept for each piece."""
_WRITES = pa.array(["write", "write_zeroes"])


def add_to(result: CellResult, recording: Path) -> None:
    """The metric of each phase; none where the recording cannot be read, or a disk is too large to be remembered."""
    try:
        found = fresh_bytes(recording)
    except FscostError:
        return
    if found is not None:
        phases = {sample.phase: sample.measured for sample in result.samples}
        result.samples += [Sample(phase, measured, "", METRIC, "bytes", float(found[phase])) for phase, measured in phases.items()]


def fresh_bytes(recording: Path) -> Counter[str] | None:
    """By interval; `mkfs` is the first to write."""
    disks = {disk["name"]: disk["size_bytes"] for disk in capture.info(recording)["disks"]}
    if max(disks.values(), default=0) > _LARGEST_DISK_BYTES:
        return None
    intervals = capture.intervals(recording)
    begins = np.array([interval.begin_ns for interval in intervals], np.uint64)
    written = {name: np.zeros(size // _PIECE_BYTES + 1, bool) for name, size in disks.items()}
    found: Counter[str] = Counter()
    for batch in capture.requests(recording):
        writes = batch.filter(pc.and_(pc.is_in(batch["op"].cast(pa.string()), _WRITES), pc.greater(batch["length"], 0)))
        within = np.searchsorted(begins, writes["complete_ns"].to_numpy(), side="right") - 1
        for name, map_ in written.items():
            mine = pc.equal(writes["disk"].cast(pa.string()), name).to_numpy(zero_copy_only=False)
            of_disk = writes.filter(pa.array(mine))
            _count(
                of_disk["offset"].to_numpy().astype(np.int64), of_disk["length"].to_numpy().astype(np.int64), map_, within[mine], found, intervals
            )
    return found


def _count(
    offset: NDArray[np.int64],
    length: NDArray[np.int64],
    written: NDArray[np.bool_],
    within: NDArray[np.int64],
    found: Counter[str],
    intervals: list[capture.RecordedInterval],
) -> None:
    """Of requests in their order: the bytes in pieces that are fresh, which they are no longer then."""
    first = offset // _PIECE_BYTES
    count = (offset + length - 1) // _PIECE_BYTES - first + 1
    request = np.repeat(np.arange(len(offset)), count)
    piece = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + first[request]
    _, once = np.unique(piece, return_index=True)
    once = once[~written[piece[once]]]
    piece, request = piece[once], request[once]
    written[piece] = True
    begin = np.maximum(offset[request], piece * _PIECE_BYTES)
    end = np.minimum(offset[request] + length[request], (piece + 1) * _PIECE_BYTES)
    sums = np.bincount(within[request], weights=end - begin, minlength=len(intervals))
    for interval, sum_ in zip(intervals, sums, strict=True):
        found[interval.name] += int(sum_)
