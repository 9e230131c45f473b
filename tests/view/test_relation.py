"""F3: several runs side by side dropped NAND bytes and life, whose order may be another one."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.test_golden import a_run

from fscost import results
from fscost.lab.fake import FakeLab
from fscost.profile.model import Profile
from fscost.results import METRICS, TOTAL, RunResults, SampleRow
from fscost.view.relation import relation

PROFILES = (Profile("ext4", "ext4"), Profile("xfs", "xfs"))


def worn(run: RunResults, factor: float) -> RunResults:
    """Return the run with NAND bytes and life, both multiples of `factor`."""
    rows = [
        SampleRow(
            cell.cell,
            cell.profile,
            cell.repetition,
            cell.seed,
            cell.order,
            TOTAL,
            True,
            "",
            metric,
            METRICS[metric].unit,
            value * factor,
        )
        for cell in run.manifest.done
        for metric, value in (("nand_write_bytes", 2048.0), ("lifetime_runs", 70.0))
    ]
    return replace(run, samples=pa.concat_tables([run.samples, results.to_table(rows)]))


def test_runs_on_a_device_are_related_by_nand_and_life(tmp_path: Path) -> None:
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    assert not relation({"a": run, "b": run}).modelled
    found = relation({"a": worn(run, 1), "b": worn(run, 3)})
    assert list(found.modelled) == ["nand_write_bytes", "lifetime_runs"]
    nand, life = found.modelled.values()
    assert [list(row) for row in nand.grid.rows] == [
        ["ext4", "2.00 KiB", "6.00 KiB", "3.00×"],
        ["xfs", "2.00 KiB", "6.00 KiB", "3.00×"],
    ]
    assert list(life.grid.rows[0])[1:] == ["70", "210", "3.00×"]
    assert [row["ratio"] for row in life.rows if row["run"] == "b"] == pytest.approx([3, 3])
    assert found.parts[:5] == [
        found.grid,
        "NAND bytes on the device of --ssd:",
        nand.grid,
        "Runs until the device of --ssd is worn out:",
        life.grid,
    ]
