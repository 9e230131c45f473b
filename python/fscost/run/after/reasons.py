"""Reasons for a profile's writes, in words kept in the manifest, since recordings may not be
kept."""

from fscost import analyze
from fscost.lab.base import CellResult

WHY = "why"
"""Fact of a profile's first cell that lists the largest reasons (`analyze.Reason`)."""
COMMITS = "commits"
"""Fact of a profile's first cell: the number of commits of its journal, by their cause
(`untold` in emulated guests)."""


def add_to(result: CellResult, explanation: analyze.Explanation) -> None:
    """Add the reasons of the measured phases of the first repetition, which stands for all
    repetitions."""
    if result.status != "done" or result.cell.repetition:
        return
    measured = {sample.phase for sample in result.samples if sample.measured}
    found = analyze.why(
        explanation.within([phase for phase in explanation.phases if phase in measured])
    )
    result.facts[WHY] = [reason.json() for reason in found.reasons]
    if found.commits is not None:
        result.facts[COMMITS] = found.commits
