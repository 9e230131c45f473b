"""Times of phases on device models, from the replay of a cell's recording."""

from pathlib import Path

import pytest

from fscost import analyze, latency, workload
from fscost.lab.base import CellResult, Sample
from fscost.matrix import Cell
from fscost.profile import resolve
from fscost.run.after import replayed

RECORDING = Path(__file__).resolve().parents[2] / "crates/explain/tests/data/ext/ext4.fscost"
MODEL = "crucial-m4-128gb-3gbps"


@pytest.mark.parametrize("unit", ["s", "virtual_s"])
def test_phases_add_up_to_the_replay_without_the_time_around_the_commands(unit: str) -> None:
    recorded = latency.replay_phases(RECORDING, {})
    phases = [each for each in analyze.measured_phases(RECORDING) if each in recorded]
    result = CellResult(Cell(resolve("ext4"), workload.resolve("big-and-small"), 0, 1, 0), "done")
    outside_s = 1e-5
    result.samples = [
        Sample(phase, True, "", "wall_s", unit, recorded[phase].recorded_s - outside_s)
        for phase in phases
    ]
    replayed.add_to(result, RECORDING, {"main": MODEL, "elsewhere": "hdd-7200"})
    whole = latency.replay(RECORDING, {"main": latency.find(MODEL)}, seed=1)
    assert result.facts == {"replayed_on": {"main": MODEL}}
    for metric, seconds in (("modelled_s", whole.closed_s), ("modelled_least_s", whole.least_s)):
        found = [each for each in result.samples if each.metric == metric]
        assert {(each.unit, each.phase) for each in found} == {(unit, phase) for phase in phases}
        assert sum(each.value for each in found) == pytest.approx(
            seconds - outside_s * len(phases), abs=1e-9
        )
    assert whole.least_s < whole.closed_s
