"""How much of what a cell wrote went to places never written before. A file system that overwrites
in place soon writes nothing there; one that writes
as a log does so until it has come round the disk."""

from collections import Counter
from collections.abc import Sequence

from fscost.capture import RecordedInterval
from fscost.lab.base import CellResult, Sample

METRIC = "device_fresh_write_bytes"
_BEFORE = "before"


def add_to(result: CellResult) -> None:
    """The metric of each phase of a cell that was recorded."""
    if not result.recorded:
        return
    found = fresh_bytes(result.recorded)
    phases = {sample.phase: sample.measured for sample in result.samples}
    # What comes before the first mark is counted into the first interval, as the agent does.
    found[next(iter(phases), _BEFORE)] += found.pop(_BEFORE, 0)
    result.samples += [
        Sample(phase, measured, "", METRIC, "bytes", float(found[phase]))
        for phase, measured in phases.items()
    ]


def fresh_bytes(recorded: Sequence[RecordedInterval]) -> Counter[str]:
    """By interval, all disks together."""
    found: Counter[str] = Counter()
    for interval in recorded:
        found[interval.name] += interval.first_write_bytes
    return found
