"""Wear that a cell's writes cause on the device of --ssd, as metrics of the whole workload
(docs/wear.md)."""

from pathlib import Path

from fscost import wear
from fscost.errors import FscostError
from fscost.lab.base import CellResult, Sample
from fscost.results import METRICS, TOTAL

NOT_WORN = "not_worn"
"""Cell fact with the reason why the cell has no wear metrics."""


def add_to(result: CellResult, recording: Path, device: wear.Device) -> None:
    """Replay a finished cell's recording. If it cannot be replayed, record the reason as a fact."""
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
