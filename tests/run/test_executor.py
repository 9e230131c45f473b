"""Cells side by side: never more than the lab supports, reported in one thread, and none left after
an error."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fscost.errors import HostError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.fake import FakeLab
from fscost.matrix import Cell, repetitions
from fscost.run import Local, RunOutcome, RunSpec
from fscost.run.measure import Task

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]


@dataclass
class Slow(FakeLab):
    """A lab whose cells wait until `awaited` of them run at once, then until they are interrupted
    or their time is over."""

    most: int = 0
    ends_s: float = 0.05
    awaited: int = 1
    at_once: set[str] = field(default_factory=set)
    changes: threading.Lock = field(default_factory=threading.Lock)
    are_there: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)

    def interrupt(self) -> None:
        self.interrupted.set()

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        with self.changes:
            self.at_once.add(cell.id)
            self.most = max(self.most, len(self.at_once))
        if self.most >= self.awaited:
            self.are_there.set()
        on_step("mkfs")
        if cell.order in self.stop_at:
            raise self.stop_at[cell.order]
        self.are_there.wait(60)
        self.interrupted.wait(self.ends_s)
        self.at_once.discard(cell.id)
        return CellResult(cell, "done")


def cells(spec: RunSpec) -> list[Cell]:
    return next(repetitions(spec.profiles, spec.workload, spec.seed))


def task(cell: Cell) -> Task:
    return Task(cell, LabOptions(cell_dir=None, disk_size_bytes=0))  # type: ignore[arg-type]


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_as_many_as_the_lab_can(spec: Make, lanes: int) -> None:
    lab = Slow(side_by_side=lanes, awaited=min(lanes, 3))
    here = threading.get_ident()
    told: list[str] = []

    def steps(cell: Cell, name: str) -> None:
        assert threading.get_ident() == here
        told.append(f"{cell.id} {name}")

    ran = [each.result.cell.id for each in Local(lab).run_cells(cells(spec()), task, steps)]
    assert sorted(ran) == sorted(cell.id for cell in cells(spec()))
    assert lab.most == min(lanes, 3)
    assert len(told) == 3


def test_what_goes_wrong_in_one_ends_the_others(spec: Make) -> None:
    before = set(threading.enumerate())
    lab = Slow(side_by_side=3, ends_s=60, stop_at={1: HostError("the disk is gone")})
    with pytest.raises(HostError, match="the disk is gone"):
        list(Local(lab).run_cells(cells(spec()), task, lambda *_: None))
    assert lab.interrupted.is_set()
    assert set(threading.enumerate()) <= before


def test_who_stops_listening_ends_the_others(spec: Make) -> None:
    before = set(threading.enumerate())
    lab = Slow(side_by_side=3)
    found = Local(lab).run_cells(cells(spec()), task, lambda *_: None)
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert lab.interrupted.is_set()
    assert set(threading.enumerate()) <= before


def test_a_run_comes_to_the_same(spec: Make, go: Go, tmp_path: Any) -> None:
    def numbers(outcome: RunOutcome) -> list[Any]:
        return sorted(tuple(row.values()) for row in outcome.results.samples.to_pylist())

    alone = go(spec(folder=tmp_path / "alone"))
    beside = go(spec(folder=tmp_path / "beside"), FakeLab(side_by_side=2, delay_s=0.01))
    assert numbers(alone) == numbers(beside)
    assert beside.results.manifest.state == "finished"
