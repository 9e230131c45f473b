"""How much of what a cell wrote went to places never written before. A file system that overwrites in place soon writes nothing there; one that writes
as a log does so until it has come round the disk."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fscost import capture
from fscost.errors import FscostError
from fscost.lab.base import CellResult, Sample

METRIC = "device_fresh_write_bytes"
_SECTOR_BYTES = 512
"""Every offset and length in a recording is a multiple of it."""
_LARGEST_DISK_BYTES = 1 << 38
"""A byte of address space is kept for each sector; of memory, for those near what was written."""
_WRITES = pa.array(["write", "write_zeroes"])
_BEFORE = "before"


def add_to(result: CellResult, recording: Path) -> None:
    """The metric of each phase; none where the recording cannot be read, or a disk is too large to be remembered."""
    try:
        found = fresh_bytes(recording)
    except FscostError:
        return
    if found is not None:
        phases = {sample.phase: sample.measured for sample in result.samples}
        # What comes before the first mark is counted into the first interval, as the agent does.
        found[next(iter(phases), _BEFORE)] += found.pop(_BEFORE, 0)
        result.samples += [Sample(phase, measured, "", METRIC, "bytes", float(found[phase])) for phase, measured in phases.items()]


def fresh_bytes(recording: Path) -> Counter[str] | None:
    """By interval, all disks together."""
    sizes = [disk["size_bytes"] for disk in capture.info(recording)["disks"]]
    if max(sizes, default=0) > _LARGEST_DISK_BYTES:
        return None
    written = [np.zeros(size // _SECTOR_BYTES, bool) for size in sizes]
    names = [interval.name for interval in capture.intervals(recording)]
    found: Counter[str] = Counter()
    before = 0
    for batch in capture.requests(recording):
        # Marks are numbered as events and are no rows: the difference counts those that came before.
        interval = pa.array(batch["event"].to_numpy() - np.arange(before, before + batch.num_rows, dtype=np.uint64))
        before += batch.num_rows
        writes = batch.append_column("interval", interval).filter(pc.is_in(batch["op"].cast(pa.string()), _WRITES))
        columns = (column.to_numpy().tolist() for column in (writes["disk"].indices, writes["offset"], writes["length"], writes["interval"]))
        for disk, offset, length, index in zip(*columns, strict=True):
            place = written[disk][offset // _SECTOR_BYTES : (offset + length) // _SECTOR_BYTES]
            found[names[index]] += (place.size - int(np.count_nonzero(place))) * _SECTOR_BYTES
            place[:] = True
    return found
