"""Load of each disk of a cell, modelled as if the disk were a device of the catalogue. The results
are metrics of the cell's phases."""

from pathlib import Path

from fscost import wear
from fscost.lab.base import CellResult, Sample

ELAPSED = "modelled_elapsed_s"
BUSY = "modelled_busy_s"
NAND = "modelled_nand_write_bytes"
_BEFORE = "before"


def add_to(result: CellResult, recording: Path, ssd: str) -> None:
    """Replay a finished cell's recording on devices of the model `ssd`; the cell's facts name the
    model."""
    device = wear.find(ssd)
    phases = {sample.phase: sample.measured for sample in result.samples}
    disks = list(dict.fromkeys(sample.disk for sample in result.samples if sample.disk)) or ["main"]
    result.facts["modelled_as"] = {"name": device.name, "summary": device.summary, **device.values}
    for interval in wear.times(recording, device).intervals:
        # Requests before the first mark do not come from mkfs, although the agent counts them
        # towards the first interval.
        if interval.name == _BEFORE or interval.name not in phases:
            continue
        measured = phases[interval.name]

        def add(
            disk: str,
            metric: str,
            unit: str,
            value: float,
            phase: str = interval.name,
            measured: bool = measured,
        ) -> None:
            result.samples.append(Sample(phase, measured, disk, metric, unit, value))

        add("", ELAPSED, "s", interval.elapsed_s)
        for metric, unit, name in ((BUSY, "s", "busy_s"), (NAND, "bytes", "nand_write_bytes")):
            add("", metric, unit, sum(member[name] for member in interval.members))
            if len(disks) > 1:
                for disk, member in zip(disks, interval.members, strict=True):
                    add(disk, metric, unit, member[name])
