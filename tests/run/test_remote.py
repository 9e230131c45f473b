"""Runs on a cluster: each cell is counted once, whatever happens to the machines."""

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.machines import Machines

from fscost.errors import HostError
from fscost.lab.base import CellResult
from fscost.lab.fake import FakeLab
from fscost.lab.spec import LabSpec
from fscost.results import load
from fscost.run import RunOutcome, RunSpec, StoppingRule
from fscost.run.executor import worker
from fscost.run.executor.survey import Question, Report, Reports, agreed
from fscost.view.run import view

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
Run = Callable[..., RunOutcome]
pytestmark = pytest.mark.usefixtures("workers_leave_nothing")


def numbers(outcome: RunOutcome) -> list[Any]:
    return sorted(tuple(row.values()) for row in outcome.results.samples.to_pylist())


def second_runs(outcome: RunOutcome) -> dict[str, Any]:
    cells = outcome.results.manifest.cells
    return {cell.cell: cell.facts["second_run"] for cell in cells if "second_run" in cell.facts}


def machines_of(outcome: RunOutcome) -> dict[int, set[str]]:
    """The machines that ran the cells of each repetition."""
    cells = outcome.results.manifest.cells
    return {
        number: {cell.machine for cell in cells if cell.repetition == number}
        for number in {cell.repetition for cell in cells}
    }


@pytest.mark.parametrize(
    "trouble",
    [
        {},
        {"twice": True},
        {"dies": {"two": 1}},
        {"dies": {"one": 2, "two": 3}, "twice": True},
        {"broken": {"one": "it has fscost 0.0, and this is fscost 1.0"}},
        {"fails_to_read": {"three"}},
    ],
    ids=repr,
)
def test_a_run_comes_to_the_same_as_a_local_one(
    spec: Make,
    go: Go,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: dict[str, Any],
) -> None:
    monkeypatch.setattr(worker, "_SMALL_BYTES", 8)  # the output is read in pieces
    monkeypatch.setattr(worker, "PIECE_BYTES", 3)
    local = go(spec(folder=tmp_path / "local", keep="all"))
    machines = Machines(**trouble)
    outcome = run(spec(keep="all"), machines)
    assert numbers(outcome) == numbers(local)
    assert numbers(outcome) == numbers(RunOutcome(load(spec().folder)))
    cells = outcome.results.manifest.cells
    assert sorted(cell.cell for cell in cells) == sorted(
        cell.cell for cell in local.results.manifest.cells
    )
    for cell in cells:
        assert (spec().folder / cell.output).read_text() == f"=== {cell.cell}\n"
        assert (spec().folder / cell.recording).read_bytes() == b"fake"
    out = {*trouble.get("dies", {}), *trouble.get("broken", {}), *trouble.get("fails_to_read", ())}
    assert {
        line.replace(",", "").split()[1 + line.startswith("skipped")] for line in machines.said
    } == out
    assert {cell.machine for cell in cells} >= {*machines.names} - out
    assert outcome.results.manifest.state == "finished"


def test_a_few_cells_run_a_second_time_on_another_machine(spec: Make, run: Run, heard: Any) -> None:
    machines = Machines()
    outcome = run(spec(), machines)
    cells = outcome.results.manifest.cells
    again = second_runs(outcome)
    assert len(again) == 3
    assert all(fact["differ"] == [] for fact in again.values())
    machine_of = {cell.cell: cell.machine for cell in cells}
    assert all(fact["machine"] != machine_of[cell] for cell, fact in again.items())
    assert len(machines.begun) == len(cells) + 3
    assert [line for line in heard.lines if "elsewhere" in line] == [
        f"ran elsewhere {cell}" for cell in again
    ]
    assert outcome.results.manifest == load(spec().folder).manifest
    assert not any("second run" in line for line in view(outcome.results).cautions)
    assert view(outcome.results).conditions[-1].startswith("3 cells ran a second time")


def test_a_machine_that_writes_other_bytes_is_noticed(spec: Make, run: Run) -> None:
    single = spec(profiles=spec().profiles[:1], stopping=StoppingRule(1, 1))
    outcome = run(single, Machines(("one", "two"), adds_bytes={"two": 4096}))
    [cell] = outcome.results.manifest.cells
    assert {each["metric"] for each in cell.facts["second_run"]["differ"]} == {"device_write_bytes"}
    [caution] = [line for line in view(outcome.results).cautions if "second run" in line]
    assert caution.startswith(
        f"ext4, repetition 0: a second run on {cell.facts['second_run']['machine']} differs in"
        " device_write_bytes of write: "
    )


def test_a_machine_lost_during_a_second_run_is_no_failure(spec: Make, run: Run) -> None:
    single = spec(profiles=spec().profiles[:1], stopping=StoppingRule(1, 1))
    outcome = run(single, Machines(("one", "two"), dies={"two": 1}))
    assert outcome.results.manifest.state == "finished"
    [cell] = outcome.results.manifest.cells
    assert "second_run" not in cell.facts


def test_a_cell_that_takes_three_machines_down_fails(spec: Make, run: Run) -> None:
    machines = Machines(("one", "two", "three", "zero"), {"one": 1, "two": 1, "three": 1})
    single = spec(profiles=spec().profiles[:1], stopping=StoppingRule(1, 1))
    failed = run(single, machines).results.manifest.failed
    assert [(cell.kind, cell.because) for cell in failed] == [
        ("machine-lost", "the machines one, three, two were lost while they ran it")
    ]


def test_no_machine_left_ends_the_run_and_the_rest_can_be_resumed(
    spec: Make, go: Go, run: Run, tmp_path: Path
) -> None:
    with pytest.raises(HostError, match="no machine of the cluster is left") as caught:
        run(spec(), Machines(("one", "two"), {"one": 2, "two": 2}))
    assert "--resume" in str(caught.value.remedy)
    assert len(load(spec().folder).manifest.cells) == 2
    rest = Machines()
    outcome = run(spec(resume=True), rest)
    assert len(rest.begun) == 7 + 3
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))


@pytest.mark.parametrize("at", range(1, 18, 2))
def test_an_interrupted_run_goes_on_exactly(
    spec: Make, go: Go, run: Run, tmp_path: Path, at: int
) -> None:
    first = run(spec(), Machines(interrupts_at=at))
    finished = len(first.results.manifest.cells)
    checked = second_runs(first)
    assert first.exit_code == (130 if at <= 15 else 0)
    rest = Machines()
    outcome = run(spec(resume=finished > 0), rest)
    assert len(rest.begun) == 9 - finished + 3 - len(checked)
    assert len(second_runs(outcome)) == 3
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))


def test_a_repetition_runs_on_one_machine_where_machines_differ(
    spec: Make, go: Go, run: Run, tmp_path: Path
) -> None:
    outcome = run(spec(), Machines(), "one_machine")
    of_repetition = machines_of(outcome)
    assert [len(machines) for machines in of_repetition.values()] == [1, 1, 1]
    assert set().union(*of_repetition.values()) == {"one", "two", "three"}
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))


def test_a_repetition_of_a_lost_machine_runs_again_from_its_beginning(
    spec: Make, go: Go, run: Run, heard: Any, tmp_path: Path
) -> None:
    """Also if the machine is lost between the run and its continuation."""
    machines = Machines(("one", "two"), {"one": 2}, interrupts_at=7)
    outcome = run(spec(), machines, "one_machine")
    assert outcome.interrupted
    assert heard.lines.count("runs again 0, of one") == 1
    outcome = run(spec(resume=True), Machines(("three",)), "one_machine")
    assert any(line.startswith("runs again") and line.endswith("of two") for line in heard.lines)
    assert [len(found) for found in machines_of(outcome).values()] == [1, 1, 1]
    assert numbers(outcome) == numbers(go(spec(folder=tmp_path / "local")))
    assert numbers(outcome) == numbers(RunOutcome(load(spec().folder)))


def test_a_repetition_of_another_machine_is_not_continued_here(
    spec: Make, go: Go, run: Run
) -> None:
    run(spec(), Machines(interrupts_at=5), "one_machine")
    with pytest.raises(HostError, match=r"began on the machine .* cells of different machines"):
        go(spec(resume=True), FakeLab(is_same_everywhere=False))


def test_a_machine_whose_disk_is_full_runs_no_further_cell(
    spec: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = itertools.count()
    real = FakeLab.run

    def full(lab: FakeLab, cell: Any, *how: Any) -> CellResult:
        if next(first) == 0:
            return CellResult(cell, "failed", "no space is left", kind="host-disk-full")
        return real(lab, cell, *how)

    monkeypatch.setattr(FakeLab, "run", full)
    machines = Machines()
    outcome = run(spec(), machines)
    assert len(outcome.results.manifest.done) == 9
    assert machines.said == ["machine one is out of the run: no space is left"]


def test_the_killed_worker_s_folder_is_removed_by_the_next(tmp_path: Path) -> None:
    question = Question(LabSpec("fake"), f"fscost.test.{os.getpid()}.{tmp_path.name}", (), 0, 0)
    left = tmp_path / "workers" / "fscost-worker-left"
    (left / "cells").mkdir(parents=True)
    (left / "held").touch()
    one = worker.Worker()
    assert one.open(question) is None
    with suppress(FileNotFoundError):
        assert not left.exists()
    worker.sweep()  # leaves the folder that is in use
    assert len(list((tmp_path / "workers").iterdir())) == 1
    other = worker.Worker()
    assert "another fscost run is in progress" in str(other.open(question))
    one.close()


def report(lanes: int = 1, reasons: dict[str, str] | None = None, **identity: str) -> Report:
    return Report({}, {"fscost": "1.0", **identity}, lanes, 0, True, 1.0, reasons or {})


@pytest.mark.parametrize(
    ("reports", "kept", "said"),
    [
        ({"a": "fscost is not installed there", "b": report()}, "b", "fscost is not installed"),
        (
            {"a": report(QEMU="7"), "b": report(QEMU="10"), "c": report(QEMU="10")},
            "bc",
            "its QEMU is '7', and that of other machines is '10'",
        ),
        ({"a": report(), "b": report(tar="1")}, "a", "its tar is '1', and that of other"),
        (
            {"a": report(reasons={"xfs": "mkfs.xfs is missing"}), "b": report()},
            "b",
            "mkfs.xfs is missing",
        ),
        (
            {"a": report(reasons={"jfs": "no jfs"}), "b": report(reasons={"jfs": "no jfs"})},
            "ab",
            "",
        ),
        ({"a": "x", "b": "y"}, "", "x"),
    ],
)
def test_machines_that_differ_are_skipped_aloud(reports: Reports, kept: str, said: str) -> None:
    lines: list[str] = []
    assert "".join(agreed(reports, lines.append)) == kept
    assert len(lines) == len(reports) - len(kept)
    assert said in "".join(lines[:1])
