"""What a cell's writes do to the device of --ssd, as metrics of the whole workload
(docs/wear.md)."""

from pathlib import Path

from fscost import wear
from fscost.errors import FscostError
from fscost.lab.base import CellResult, Sample
from fscost.results import METRICS, TOTAL

NOT_WORN = "not_worn"
"""The fact of a cell that says why it has none of these metrics."""


def add_to(result: CellResult, recording: Path, device: wear.Device) -> None:
    """Replay a finished cell's recording; a cell whose recording cannot be replayed says why."""
    measured = list(dict.fromkeys(sample.phase for sample in result.samples if sample.measured))
    try:
        found = wear.worn(recording, measured, device)
    except FscostError as error:
        result.facts[NOT_WORN] = error.what
        return
    result.samples += [
        Sample(TOTAL, True, "", metric, METRICS[metric].unit, value)
        for metric, value in found.items()
    ]
