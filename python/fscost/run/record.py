"""A lab's answer → what results keep of it."""

from pathlib import Path

from fscost import files
from fscost.errors import InputError
from fscost.lab.base import CellResult
from fscost.matrix import Cell
from fscost.results import TOTAL, CellRecord, SampleRow, with_totals
from fscost.run import explained

RUN_ENDING_KINDS = ("host-disk-full",)
"""Failures that every further cell would share."""
_HOPELESS_KINDS = ("mkfs", "mount", "plan", "disk-full", "recording-too-large")
"""Failures that the same profile meets again, whatever the repetition."""
_MOST_FAILURES = 2


def record(
    result: CellResult, folder: Path, duration_s: float
) -> tuple[CellRecord, list[SampleRow]]:
    """A cell's record and its samples; a failed cell's samples are dropped: it has phases that the
    others have not."""
    cell = result.cell
    if result.status == "done" and (different := explained.differences(result.samples)):
        explained.fail(result, different)
    done = result.status == "done"
    kept = CellRecord(
        cell=cell.id,
        profile=cell.profile.name,
        repetition=cell.repetition,
        seed=cell.seed,
        order=cell.order,
        status="done" if done else "failed",
        duration_s=round(duration_s, 3),
        because=result.because,
        kind=result.kind,
        recording=_inside(result.recording, folder),
        output=_inside(result.output, folder),
        facts=result.facts,
        files_sha256={
            _inside(path, folder): files.seal(path)
            for path in (result.recording, result.output)
            if path is not None and path.exists()
        },
    )
    return kept, _rows(cell, result) if done else []


def why_give_up(failures: list[CellRecord]) -> str | None:
    """Whether a profile with these failed cells is tried again."""
    for failure in failures:
        if failure.kind in _HOPELESS_KINDS:
            return f"{failure.kind} fails the same way each time"
    return f"{len(failures)} cells failed" if len(failures) >= _MOST_FAILURES else None


def _rows(cell: Cell, result: CellResult) -> list[SampleRow]:
    rows = [
        SampleRow(
            cell.id,
            cell.profile.name,
            cell.repetition,
            cell.seed,
            cell.order,
            s.phase,
            s.measured,
            s.disk,
            s.metric,
            s.unit,
            float(s.value),
        )
        for s in (*result.samples, *result.totals)
    ]
    # What is measured of the whole workload has no values of phases.
    whole = [row for row in rows if row.phase == TOTAL]
    return [*with_totals([row for row in rows if row.phase != TOTAL]), *whole]


def _inside(path: Path | None, folder: Path) -> str:
    """Relative, so that a run's folder can be moved."""
    if path is None or not path.exists():
        return ""
    try:
        return str(path.resolve().relative_to(folder.resolve()))
    except ValueError:
        raise InputError(
            f"{path} leads out of the run's folder {folder}", "start a new run"
        ) from None
