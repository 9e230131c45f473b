"""Totals over the phases of a cell."""

from collections.abc import Callable

import pytest

from fscost.results import METRICS, TOTAL, Combine, Metric, SampleRow, with_totals

Row = Callable[..., SampleRow]


def totals(rows: list[SampleRow]) -> dict[tuple[str, str], float]:
    return {(row.metric, row.disk): row.value for row in with_totals(rows) if row.phase == TOTAL}


def test_what_is_measured_adds_up_and_the_rest_does_not(row: Row) -> None:
    found = totals(
        [
            row("mkfs", "device_write_bytes", 1000, measured=False),
            row("unpack", "device_write_bytes", 10),
            row("delete", "device_write_bytes", 5),
        ]
    )
    assert found == {("device_write_bytes", ""): 15}


def test_space_is_that_of_the_last_measured_phase(row: Row) -> None:
    rows = [
        row("a", "space_used_bytes", 90),
        row("b", "space_used_bytes", 30),
        row("mkfs", "space_used_bytes", 7, measured=False),
    ]
    assert totals(rows) == {("space_used_bytes", ""): 30}
    assert totals([row("a", "space_used_bytes", 90), row("b", "wall_s", 1, unit="s")]) == {
        ("wall_s", ""): 1
    }


def test_the_longest_pause_is_the_longest_and_a_percentile_has_no_total(row: Row) -> None:
    rows = [
        row(phase, metric, value, unit="s")
        for phase, value in (("a", 3.0), ("b", 2.0))
        for metric in ("pause_s_max", "pause_s_p99")
    ]
    assert totals(rows) == {("pause_s_max", ""): 3.0}
    assert totals(rows[:2]) == {("pause_s_max", ""): 3.0, ("pause_s_p99", ""): 3.0}


def test_amplification_is_that_of_the_sums(row: Row) -> None:
    rows = []
    for phase, device, program in (("a", 100, 50), ("b", 100, 150)):
        rows += [
            row(phase, "device_write_bytes", device),
            row(phase, "program_write_bytes", program),
        ]
        rows.append(row(phase, "write_amplification", device / program, unit="ratio"))
    assert totals(rows)["write_amplification", ""] == 1.0


def test_amplification_of_a_phase_that_wrote_nothing_counts_in_the_total(row: Row) -> None:
    rows = [
        row("write", "device_write_bytes", 100),
        row("write", "program_write_bytes", 50),
        row("write", "write_amplification", 2, unit="ratio"),
        row("delete", "device_write_bytes", 50),
        row("delete", "program_write_bytes", 0),
    ]
    assert totals(rows)["write_amplification", ""] == 3.0
    assert ("write_amplification", "") not in totals(rows[3:])


def test_disks_add_up_where_the_lab_gave_no_sum(row: Row) -> None:
    rows = [
        row("a", "device_write_bytes", 3, disk="main"),
        row("a", "device_write_bytes", 4, disk="journal"),
    ]
    assert totals(rows) == {
        ("device_write_bytes", "main"): 3,
        ("device_write_bytes", "journal"): 4,
        ("device_write_bytes", ""): 7,
    }
    assert [r.value for r in with_totals(rows) if r.phase == "a" and not r.disk] == [7]
    with_sum = [*rows, row("a", "device_write_bytes", 7)]
    assert totals(with_sum) == totals(rows)


def test_a_new_metric_needs_registering_and_nothing_else(row: Row) -> None:
    with pytest.raises(ValueError, match="moon_write_bytes"):
        with_totals([row("a", "moon_write_bytes", 1)])
    metrics = METRICS | {
        "moon_write_bytes": Metric("moon_write_bytes", "bytes", Combine.SUM, "the moon")
    }
    rows = with_totals([row("a", "moon_write_bytes", 1), row("b", "moon_write_bytes", 2)], metrics)
    assert [r.value for r in rows if r.phase == TOTAL] == [3]


def test_a_unit_that_is_not_the_metrics_is_refused(row: Row) -> None:
    with pytest.raises(ValueError, match="device_write_bytes in s"):
        with_totals([row("a", "device_write_bytes", 1, unit="s")])


def test_every_metric_has_its_unit_in_its_name_and_a_meaning() -> None:
    for name, metric in METRICS.items():
        assert name == metric.name
        assert metric.meaning
        if metric.unit == "bytes":
            assert name.endswith("_bytes")
        if metric.unit == "s":
            assert "_s" in name
        for needed in filter(None, (metric.numerator, metric.denominator)):
            assert METRICS[needed].additive


def test_the_native_lab_measures_what_is_registered() -> None:
    units = pytest.importorskip("fscost.lab.cell.samples").UNITS
    assert {name: metric.unit for name, metric in METRICS.items() if name in units} == units
