"""Why a profile wrote what it wrote, in words that its manifest keeps: recordings are not."""

from fscost import analyze
from fscost.errors import FscostError
from fscost.lab.base import CellResult

WHY = "why"
"""The fact of a profile's first cell that lists the largest reasons (`analyze.Reason`)."""


def add_to(result: CellResult, explanation: analyze.Explanation) -> None:
    """Of the measured phases of the first repetition: one stands for all."""
    if result.status != "done" or result.cell.repetition:
        return
    measured = {sample.phase for sample in result.samples if sample.measured}
    try:
        found = analyze.why(
            explanation.within([phase for phase in explanation.phases if phase in measured])
        )
    except FscostError:  # Told by `explained` already, or by the next pass over the recording.
        return
    result.facts[WHY] = [reason.json() for reason in found]
