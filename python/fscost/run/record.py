"""Conversion of a lab's result to the record and samples that results keep."""

from pathlib import Path

from fscost import files
from fscost.errors import InputError
from fscost.lab.base import CellResult
from fscost.matrix import Cell
from fscost.results import CELLS, STORED, TOTAL, CellRecord, SampleRow, with_totals
from fscost.run.after import explained
from fscost.run.executor import Ran

RUN_ENDING_KINDS = ("host-disk-full",)
"""Kinds of failure that every further cell would share."""
_HOPELESS_KINDS = ("mkfs", "mount", "plan", "disk-full", "recording-too-large")
"""Kinds of failure that recur for the same profile in every repetition."""
_MOST_FAILURES = 2


def record(ran: Ran, folder: Path) -> tuple[CellRecord, list[SampleRow]]:
    """Return a cell's record and its samples. A failed cell's samples are dropped, because its
    phases may not match those of other cells."""
    result, cell = ran.result, ran.result.cell
    if result.status == "done" and (different := explained.differences(result.samples)):
        explained.fail(result, different)
    done = result.status == "done"
    stored = result.facts.get(STORED)
    # Where `fscost recording fetch` puts it.
    recording = (
        f"{CELLS}/{cell.id}/recording.fscost" if stored else _inside(result.recording, folder)
    )
    kept = CellRecord(
        cell=cell.id,
        profile=cell.profile.name,
        repetition=cell.repetition,
        seed=cell.seed,
        order=cell.order,
        status="done" if done else "failed",
        duration_s=round(ran.duration_s, 3),
        because=result.because,
        kind=result.kind,
        recording=recording,
        output=_inside(result.output, folder),
        facts=result.facts,
        files_sha256={
            _inside(path, folder): files.seal(path)
            for path in (result.recording, result.output)
            if path is not None and path.exists()
        }
        | ({recording: stored["sha256"]} if stored else {}),
        machine=ran.machine,
    )
    return kept, rows(cell, result) if done else []


def why_give_up(failures: list[CellRecord]) -> str | None:
    """Reason not to try a profile with these failed cells again, or None."""
    for failure in failures:
        if failure.kind in _HOPELESS_KINDS:
            return f"{failure.kind} fails the same way each time"
    return f"{len(failures)} cells failed" if len(failures) >= _MOST_FAILURES else None


def rows(cell: Cell, result: CellResult) -> list[SampleRow]:
    """Return a cell's samples, with sums over disks and totals."""
    found = [
        SampleRow(
            cell.id, cell.profile.name, cell.repetition, cell.seed, cell.order, **vars(sample)
        )
        for sample in (*result.samples, *result.totals)
    ]
    # Metrics of the whole workload have no values for phases.
    whole = [row for row in found if row.phase == TOTAL]
    return [*with_totals([row for row in found if row.phase != TOTAL]), *whole]


def _inside(path: Path | None, folder: Path) -> str:
    """Path relative to the run's folder, so that the folder can be moved."""
    if path is None or not path.exists():
        return ""
    try:
        return str(path.resolve().relative_to(folder.resolve()))
    except ValueError:
        raise InputError(
            f"{path} leads out of the run's folder {folder}", "start a new run"
        ) from None
