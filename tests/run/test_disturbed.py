"""Cells that other programs disturb by sync(2): repeated, counted and reported."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fscost.lab.fake import FakeLab
from fscost.results import load
from fscost.run import RunOutcome, RunSpec, StoppingRule
from fscost.view import outside
from fscost.view.run import answer, view

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
FACT = "outside_sync_calls"


def facts(outcome: RunOutcome) -> dict[str, Any]:
    cells = load(outcome.results.folder).manifest.cells
    return {cell.cell: cell.facts[FACT] for cell in cells if FACT in cell.facts}


def attempts(lab: FakeLab) -> dict[str, int]:
    """Return the cells that ran more than once."""
    return {cell: lab.ran.count(cell) for cell in lab.ran if lab.ran.count(cell) > 1}


def test_a_disturbed_cell_is_repeated_and_what_is_kept_is_undisturbed(
    spec: Make, go: Go, heard: Any
) -> None:
    lab = FakeLab(outside_syncs={"ext4.0": [2, 1, 0], "xfs.1": [3, 0], "xfs.2": [0]})
    outcome = go(spec(), lab)
    assert attempts(lab) == {"ext4.0": 3, "xfs.1": 2}
    assert facts(outcome) == {
        "ext4.0": {"kept": 0, "dropped": [2, 1]},
        "xfs.1": {"kept": 0, "dropped": [3]},
    }
    assert outcome.results.manifest.state == "finished"
    assert len(outcome.results.manifest.done) == 9
    assert [line for line in heard.lines if "repeats" in line] == [
        "repeats ext4.0: 2",
        "repeats ext4.0: 1",
        "repeats xfs.1: 3",
    ]
    shown = view(outcome.results)
    assert "Uncertain" not in shown.headline
    assert shown.cautions[0] == (
        "3 attempts were dropped and repeated, because other programs called sync 6 times during"
        " them."
    )


def test_where_it_keeps_happening_no_further_cell_is_repeated_and_the_answer_is_qualified(
    spec: Make, go: Go, heard: Any
) -> None:
    lab = FakeLab(outside_syncs={"xfs": [2], "ext4.2": [4]})
    outcome = go(spec(), lab)
    assert attempts(lab) == {"xfs.0": 3}
    assert heard.count("repeats no more") == 1
    assert facts(outcome) == {
        "xfs.0": {"kept": 2, "dropped": [2, 2]},
        **{f"xfs.{number}": {"kept": 2, "dropped": []} for number in (1, 2)},
        "ext4.2": {"kept": 4, "dropped": []},
    }
    shown = view(outcome.results)
    qualification = "Uncertain: other programs called sync during most cells of xfs."
    assert shown.headline.endswith(qualification)
    assert answer(outcome.results) == shown.headline
    assert shown.cautions[0] == (
        "Other programs called sync 10 times during 4 of 9 cells (ext4 1 of 3, xfs 3 of 3). sync"
        " writes back every file system of this machine, so these cells include writes that the"
        " workload alone does not cause. Stop these programs, or use `--lab vm`: a virtual machine"
        " is not affected."
    )
    # A resumed run knows that it is useless to repeat.
    lab.ran.clear()
    go(spec(resume=True, stopping=StoppingRule(4, 4)), lab)
    assert len(lab.ran) == 3


def test_no_cell_is_repeated_beyond_the_time_limit(spec: Make, go: Go) -> None:
    lab = FakeLab(outside_syncs={"xfs": [1, 0]})
    outcome = go(spec(stopping=StoppingRule(3, 10, max_minutes=1e-6)), lab)
    assert attempts(lab) == {}
    assert facts(outcome) == {"xfs.0": {"kept": 1, "dropped": []}}


def test_where_calls_cannot_be_counted_the_caution_says_so(spec: Make, go: Go) -> None:
    outcome = go(spec())
    outcome.results.manifest.cells[0].facts[FACT] = {"kept": None}
    assert "could not be counted here" in view(outcome.results).cautions[0]
    assert "Uncertain" not in view(outcome.results).headline


def test_escapes_in_a_strangers_profile_do_not_reach_the_terminal(spec: Make, go: Go) -> None:
    manifest = (results := go(spec(), FakeLab(outside_syncs={"xfs": [1]})).results).manifest
    manifest.profiles[-1]["name"] = "xfs\x1b[2J"
    manifest.cells[:] = [
        replace(cell, profile="xfs\x1b[2J") if cell.profile == "xfs" else cell
        for cell in manifest.cells
    ]
    told = [outside.qualified("Lowest.", results), *outside.cautions(results)]
    assert "most cells of xfs" in told[0]
    assert "\x1b" not in "".join(told)
