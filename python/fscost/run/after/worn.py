"""Wear that a cell's writes cause on the device of --ssd, as metrics of the whole workload
(docs/wear.md)."""

from pathlib import Path

from fscost import wear
from fscost.lab.base import CellResult, Sample
from fscost.results import METRICS, TOTAL


def add_to(result: CellResult, recording: Path, device: wear.Device) -> None:
    """Replay a finished cell's recording."""
    measured = list(dict.fromkeys(sample.phase for sample in result.samples if sample.measured))
    found = wear.worn(recording, measured, device)
    result.samples += [
        Sample(TOTAL, True, "", metric, METRICS[metric].unit, value)
        for metric, value in found.items()
    ]
