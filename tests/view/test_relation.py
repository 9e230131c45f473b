"""F3: several runs side by side dropped NAND bytes and life, whose order may be another one."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.cli.test_golden import a_run

from fscost import results
from fscost.errors import InputError
from fscost.lab.fake import FakeLab
from fscost.profile.model import Profile
from fscost.results import METRICS, TOTAL, RunResults, SampleRow
from fscost.view.breakdown import WRITTEN
from fscost.view.changes import Condition, compared, grid, headline
from fscost.view.per import Per
from fscost.view.relation import life, relation, with_years, within

PROFILES = (Profile("ext4", "ext4"), Profile("xfs", "xfs"))


def worn(run: RunResults, factor: float) -> RunResults:
    """Return the run with NAND bytes and life, both multiples of `factor`."""
    return with_totals(run, {"nand_write_bytes": 2048.0 * factor, "lifetime_runs": 70.0 * factor})


def with_totals(run: RunResults, values: dict[str, float]) -> RunResults:
    """Return the run with these values in place of its own."""
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
            value,
        )
        for cell in run.manifest.done
        for metric, value in values.items()
    ]
    others = run.samples.filter(pc.invert(pc.is_in(run.samples["metric"], pa.array(values))))
    return replace(run, samples=pa.concat_tables([others, results.to_table(rows)]))


def test_runs_on_a_device_are_related_by_nand_and_life(tmp_path: Path) -> None:
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    assert not relation({"a": run, "b": run}).modelled
    found = relation({"a": worn(run, 1), "b": worn(run, 3)})
    assert list(found.modelled) == ["nand_write_bytes", "lifetime_runs"]
    nand, lives = found.modelled.values()
    assert [list(row) for row in nand.grid.rows] == [
        ["ext4", "2.00 KiB", "6.00 KiB", "3.00×"],
        ["xfs", "2.00 KiB", "6.00 KiB", "3.00×"],
    ]
    assert list(lives.grid.rows[0])[1:] == ["70", "210", "3.00×"]
    assert [row["ratio"] for row in lives.rows if row["run"] == "b"] == pytest.approx([3, 3])
    assert found.parts[:5] == [
        found.grid,
        "NAND bytes on the device of --ssd:",
        nand.grid,
        "Runs until the device of --ssd is worn out:",
        lives.grid,
    ]


def test_the_workloads_of_a_suite_are_related_by_nand_and_life_too(tmp_path: Path) -> None:
    """A suite's table had no metric of --ssd. A number of operations divides NAND bytes alone."""
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    found = within({"log": worn(run, 1), "copy": run}, WRITTEN, {"log": Per(2, "record")})
    assert list(found.modelled) == ["nand_write_bytes", "lifetime_runs"]
    nand, lives = found.modelled.values()
    assert [list(row) for row in nand.grid.rows] == [
        ["log, per record", "1.00 KiB", "1.00 KiB", "≈"],
        ["copy", "–", "–", "–"],
    ]
    assert list(lives.grid.rows[0]) == ["log", "70", "70", "≈"]
    assert not within({"log": run, "copy": run}, WRITTEN, {}).modelled


def test_the_answer_about_two_runs_says_how_long_the_device_lasts(tmp_path: Path) -> None:
    """At one speed: the runs differ by wear alone, and not by the load of two days."""
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    days = 365 / 70
    first = with_totals(worn(run, 1), {"wall_s": 86400 * days})
    shorter = with_totals(worn(run, 0.2), {"wall_s": 86400 * days * 7})
    runs = with_years([first, shorter])
    found = relation({"a": runs[0], "b": runs[1]})
    assert list(found.modelled) == ["nand_write_bytes", "lifetime_runs", "lifetime_years"]
    [told] = life(found, first)
    assert told == (
        "Life: the --ssd device would last 1.0 years under ext4, then 73 days (0.20×);"
        " 1.0 years under xfs, then 73 days (0.20×), back to back at the speed of"
        " ext4 in the first run."
    )
    # Without a speed, there are no years.
    timeless = with_totals(run, {"wall_s": 0.0})
    runs = with_years([worn(timeless, 1), worn(timeless, 0.2)])
    [told] = life(relation({"a": runs[0], "b": runs[1]}), run)
    assert told == (
        "Life: the --ssd device would last 70 runs under ext4, then 14 runs (0.20×); 70 runs under"
        " xfs, then 14 runs (0.20×)."
    )
    assert life(relation({"a": run, "b": run}), run) == []


def test_the_notes_explain_the_signs_that_the_tables_have(tmp_path: Path) -> None:
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    text = " ".join(relation({"a": run, "b": run}).notes)
    assert "≈: no difference found." in text
    assert "In brackets" not in text
    doubled = with_totals(run, {WRITTEN: 5.0})
    assert "≈" not in " ".join(
        relation({"a": with_totals(run, {WRITTEN: 9.0}), "b": doubled}).notes
    )
    # NAND bytes come from one recording, even if the run has more repetitions.
    one = replace(run.manifest, cells=[c for c in run.manifest.cells if c.repetition == 0])
    single = with_totals(replace(run, manifest=one), {"nand_write_bytes": 7.0})
    single = replace(single, manifest=run.manifest)
    assert "In brackets" in " ".join(relation({"a": single, "b": single}).notes)


@pytest.mark.parametrize("metric", ["wall_s", "fsync_latency_ns_p99", "write_latency_ns_p50"])
def test_times_of_any_unit_are_refused(tmp_path: Path, metric: str) -> None:
    """The 99th percentile of fsync was "5.00×, higher" across runs."""
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    runs = {"a": with_totals(run, {metric: 1.0}), "b": with_totals(run, {metric: 5.0})}
    with pytest.raises(InputError, match="is a time: times are comparable only within one run"):
        relation(runs, metric)


def test_years_need_a_device(tmp_path: Path) -> None:
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    with pytest.raises(InputError, match="lifetime_years is known only for a device"):
        relation({"a": run, "b": run}, "lifetime_years")
    runs = with_years([worn(run, 1), worn(run, 2)])
    assert relation(dict(zip("ab", runs, strict=True)), "lifetime_years").rows


def test_a_shorter_life_is_a_regression(tmp_path: Path) -> None:
    """The same bytes in another order may wear a card out in half the time."""
    run = a_run(tmp_path / "a", FakeLab(), PROFILES)
    life_of = [with_totals(run, {"lifetime_runs": runs}) for runs in (70.0, 35.0)]
    shorter, longer = compared(*life_of), compared(*reversed(life_of))
    assert headline(shorter) == "2 regressions; the largest: ext4, life in runs −50 %."
    assert grid(shorter).rows[0][-1] == "regression"
    assert len(Condition.parse("lifetime_runs < -40%").holds(shorter)) == 2
    assert (
        headline(longer) == "No regression; 2 improvements; the largest: ext4, life in runs 2.00×."
    )
    assert grid(longer).rows[-1][-1] == "improvement"
