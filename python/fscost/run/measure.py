"""One cell from start to end: a lab records and verifies it, then the recording is explained, and
kept or removed. Tasks and results are plain data, so another process can do the work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fscost.lab.base import CellResult, Lab, LabOptions
from fscost.lab.cell import plan
from fscost.matrix import Cell
from fscost.run.after import explained, first_writes, modelled, reasons, replayed, said, timed, worn
from fscost.run.after.guard import guarded
from fscost.wear import Device


@dataclass(frozen=True)
class Task:
    """A cell, how a lab runs it, and what to do with its recording. `replay`: device models by
    disk."""

    cell: Cell
    options: LabOptions
    keep_recording: bool = False
    ssd: str = ""
    wear_device: Device | None = None
    replay: Mapping[str, str] = field(default_factory=dict)
    store: str = ""
    """URL of the store that receives a kept recording; empty: the run's folder does."""
    machine: str | None = None
    """Machine that must run the cell (empty: the one that holds the results); None: any."""


def measure(lab: Lab, task: Task, on_step: Callable[[str], None]) -> CellResult:
    """Run the cell of `task`; `on_step` receives the name of each interval as it begins."""
    result = lab.run(task.cell, task.options, on_step)
    recording = result.recording
    if result.status != "done" or recording is None:
        return result
    said.add_to(result)
    keep = False
    try:
        if result.recorded:
            _explain(task, result, recording)
        if task.keep_recording and result.status == "done":
            keep = True
        keep = keep or result.keep_recording or result.kind == "conservation"
    finally:
        # Remove it even on Ctrl-C: it was not requested, and it may be large.
        if not keep:
            recording.unlink(missing_ok=True)
            result.recording = None
        plan.remove_timing(task.cell, plan.Paths(task.options.cell_dir))
    return result


def _explain(task: Task, result: CellResult, recording: Path) -> None:
    with guarded(result, "bytes written for the first time"):
        first_writes.add_to(result)
    with guarded(result, "times of requests"):
        timed.add_to(result, recording.parent)
    explanation = explained.add_to(result, recording, packs=task.keep_recording)
    if explanation is not None:
        with guarded(result, "reasons"):
            reasons.add_to(result, explanation)
    if task.replay:
        with guarded(result, "time on modelled devices"):
            replayed.add_to(result, recording, task.replay)
    if task.ssd:
        with guarded(result, "load of modelled devices"):
            modelled.add_to(result, recording, task.ssd)
    if task.wear_device is not None and result.status == "done":
        with guarded(result, "wear"):
            worn.add_to(result, recording, task.wear_device)
