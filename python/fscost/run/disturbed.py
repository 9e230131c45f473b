"""Cells that other programs disturbed.

sync(2) writes back every file system of the machine, so also that of a cell: what the workload
would have overwritten or removed in memory reaches the disk.
"""

from collections.abc import Sequence

from fscost.lab.base import CellResult
from fscost.results import Manifest
from fscost.run.spec import StoppingRule

METRIC = "outside_sync_calls"
"""Metric, and cell fact of a disturbed cell: `kept` has the calls of the attempt that the results
include, `dropped` those of earlier attempts."""
MOST_REPEATS = 2
"""Repeats of one cell. If the last is disturbed too, other programs call sync all the time, and the
run repeats no further cell."""


def calls(result: CellResult) -> int:
    """Return the number of outside calls during the measured phases."""
    values = (each.value for each in result.samples if each.metric == METRIC and each.measured)
    return round(sum(values)) if result.status == "done" else 0


def may_repeat(
    rule: StoppingRule, manifest: Manifest, dropped: Sequence[int], duration_s: float
) -> bool:
    """True if a cell that took `duration_s` may be repeated after it was repeated for each of
    `dropped`."""
    if len(dropped) >= MOST_REPEATS or any(_stays_disturbed(each.facts) for each in manifest.cells):
        return False
    return manifest.elapsed_s + duration_s <= rule.max_minutes * 60


def note(result: CellResult, dropped: Sequence[int]) -> None:
    """Add the cell fact, if any attempt was disturbed."""
    if dropped or calls(result):
        result.facts[METRIC] = {"kept": calls(result), "dropped": list(dropped)}


def stays_disturbed(result: CellResult) -> bool:
    """True if the last repeat of the cell was disturbed like all attempts before it."""
    return _stays_disturbed(result.facts)


def _stays_disturbed(facts: dict[str, object]) -> bool:
    match facts.get(METRIC):
        case {"kept": int(kept), "dropped": list(dropped)}:
            return kept > 0 and len(dropped) >= MOST_REPEATS
    return False
