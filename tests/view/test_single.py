"""One repetition, and equal repetitions, in emulated guests."""

from pathlib import Path
from typing import Any

import pytest
from tests import manifests

from fscost.report.html import html_text
from fscost.results import CellRecord, RunResults, to_table
from fscost.results.table import SampleRow, with_totals
from fscost.run.spec import StoppingRule
from fscost.run.stopping import why_stop
from fscost.stats import Verdict
from fscost.view.page import page
from fscost.view.run import view

MIB = 1 << 20
WRITTEN = "device_write_bytes"
TURNS = {"guest": {"takes_turns": True}}


def of_guests(
    values: dict[str, list[float]], facts: dict[str, Any] = TURNS, unit: str = "virtual_s"
) -> RunResults:
    """Return a run of these profiles, named by their types, with the bytes of each repetition."""
    rows: list[SampleRow] = []
    cells = []
    for profile, found in values.items():
        for repetition, value in enumerate(found):
            name = f"{profile}.{repetition}"
            about = (name, profile, repetition, 0, 0, "run", True, "")
            rows += with_totals(
                [
                    SampleRow(*about, WRITTEN, "bytes", value),
                    SampleRow(*about, "device_write_requests", "count", value),
                    SampleRow(*about, "wall_s", unit, 1 + repetition / 1000),
                ]
            )
            done = ("done", 1.0, "", "", "", "", facts)
            cells.append(CellRecord(name, profile, repetition, 0, 0, *done))
    manifest = manifests.made(
        profiles=[{"name": name, "type": name} for name in values],
        stopping={"metric": WRITTEN},
        baseline=next(iter(values)),
        cells=cells,
    )
    return RunResults(Path("folder"), manifest, to_table(rows))


REASON = (
    "One repetition is a result: an emulated guest executes the same instructions each time, and"
    " the bytes written by repetitions were within 1 % of each other. Other figures of one"
    " repetition show no difference."
)


def test_one_repetition_in_guests_is_a_result_and_says_why() -> None:
    found = view(of_guests({"ext4": [10 * MIB], "f2fs": [5 * MIB]}))
    assert found.headline == "Lowest: f2fs, 5.00 MiB, 50 % less than ext4."
    assert REASON in found.legend
    [row] = [row for row in found.rows if row.metric == WRITTEN and row.verdict is Verdict.LOWER]
    assert (row.ratio_low, row.ratio_high) == pytest.approx((0.49, 0.51))
    # No test bounds how far other figures lie apart.
    others = [row for row in found.rows if row.metric != WRITTEN and row.ratio is not None]
    assert {row.verdict for row in others} == {Verdict.NOT_SHOWN}


@pytest.mark.parametrize(
    "results",
    [
        # Within the bounds of both file systems.
        of_guests({"ext4": [10 * MIB], "xfs": [9.5 * MIB]}),
        # Replies came at other instructions, or the guest ran in real time.
        of_guests({"ext4": [10 * MIB], "f2fs": [5 * MIB]}, {"guest": {"takes_turns": False}}),
        of_guests({"ext4": [10 * MIB], "f2fs": [5 * MIB]}, {}),
        of_guests({"ext4": [10 * MIB], "f2fs": [5 * MIB]}, unit="s"),
    ],
)
def test_one_repetition_elsewhere_is_no_result(results: RunResults) -> None:
    rows = [row for row in view(results).rows if row.metric == WRITTEN and row.ratio is not None]
    assert {row.verdict for row in rows} == {Verdict.NOT_SHOWN}


@pytest.mark.parametrize(
    ("values", "rule", "unit", "is_enough"),
    [
        ([MIB, MIB], StoppingRule(), "virtual_s", True),
        ([MIB, MIB], StoppingRule(), "s", False),
        ([MIB, MIB + 512], StoppingRule(), "virtual_s", False),
        ([MIB], StoppingRule(), "virtual_s", False),
        ([MIB, MIB], StoppingRule(min_repetitions=3, max_repetitions=3), "virtual_s", False),
        ([MIB, MIB], StoppingRule(min_repetitions=5), "virtual_s", False),
    ],
)
def test_two_equal_repetitions_in_guests_are_enough(
    values: list[float], rule: StoppingRule, unit: str, is_enough: bool
) -> None:
    results = of_guests({"ext4": values, "f2fs": values}, unit=unit)
    because = why_stop(rule, results, ["ext4", "f2fs"], len(values))
    assert because == ("n = 2, equal to the byte" if is_enough else None)


def test_a_page_calls_the_times_of_guests_virtual() -> None:
    for unit, header in (("virtual_s", "virtual time"), ("s", "time")):
        text = html_text(page(of_guests({"ext4": [MIB]}, unit=unit)))
        assert f">{header}</button>" in text
        assert f"{header} (less is better)" in text
