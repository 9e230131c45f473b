"""Time of each phase on device models, from a replay of the cell's recording (docs/time.md). Unlike
disks that wait for a model, this also works in guests whose clock counts instructions."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from fscost import latency
from fscost.lab.base import VIRTUAL_UNITS, CellResult, Sample

IN_ORDER, LEAST = "modelled_s", "modelled_least_s"
MODELS = "replayed_on"
"""Cell fact that names the model of each disk."""


def add_to(result: CellResult, recording: Path, models: Mapping[str, str]) -> None:
    """Replay a finished cell's recording on `models`, names by disk."""
    own = {
        disk.name: models[disk.name] for disk in result.cell.profile.disks if disk.name in models
    }
    found = latency.replay_phases(
        recording, {disk: latency.find(name) for disk, name in own.items()}, seed=result.cell.seed
    )
    result.facts[MODELS] = own
    result.samples += list(_samples(result, found))


def _samples(result: CellResult, found: Mapping[str, latency.Times]) -> Iterator[Sample]:
    """Yield the times. An interval of the recording spans mark to mark, so it includes the time
    around the command in which the agent reads counters, which `wall_s` does not."""
    walls = [sample for sample in result.samples if sample.metric == "wall_s" and not sample.disk]
    for wall in walls:
        if (times := found.get(wall.phase)) is None:
            continue
        outside_s = max(0.0, times.recorded_s - wall.value)
        # In a guest, the program's own time is virtual, and so is the sum.
        unit = VIRTUAL_UNITS["s"] if wall.unit == VIRTUAL_UNITS["s"] else "s"
        for metric, seconds in ((IN_ORDER, times.in_order_s), (LEAST, times.least_s)):
            value = max(0.0, seconds - outside_s)
            yield Sample(wall.phase, wall.measured, "", metric, unit, value)
