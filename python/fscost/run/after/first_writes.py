"""Bytes that a cell wrote to places never written before.

A file system that overwrites in place soon writes no such bytes; a log-structured one writes them
until its log has wrapped around the disk.
"""

from collections import Counter
from collections.abc import Sequence

from fscost.capture import RecordedInterval
from fscost.lab.base import CellResult, Sample

METRIC = "first_write_bytes"
_BEFORE = "before"


def add_to(result: CellResult) -> None:
    """Add the metric of each phase, if the cell was recorded."""
    if not result.recorded:
        return
    found = by_interval(result.recorded)
    phases = {sample.phase: sample.measured for sample in result.samples}
    # Bytes before the first mark count towards the first interval, as in the agent.
    found[next(iter(phases), _BEFORE)] += found.pop(_BEFORE, 0)
    result.samples += [
        Sample(phase, measured, "", METRIC, "bytes", float(found[phase]))
        for phase, measured in phases.items()
    ]


def by_interval(recorded: Sequence[RecordedInterval]) -> Counter[str]:
    """Sum the bytes by interval, over all disks."""
    found: Counter[str] = Counter()
    for interval in recorded:
        found[interval.name] += interval.first_write_bytes
    return found
