"""Runs in the fake lab."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.machines import Machines

from fscost.lab.fake import FakeLab
from fscost.lab.spec import LabSpec
from fscost.matrix import Cell, repetitions
from fscost.profile.model import Profile
from fscost.results import CellRecord
from fscost.run import Estimate, Listener, Local, RunOutcome, RunSpec, StoppingRule, execute
from fscost.run.executor.remote import Remote
from fscost.run.executor.survey import Question
from fscost.workload.model import Step, Workload

PROFILES = (
    Profile("ext4", "ext4"),
    Profile("ext4 -O ^has_journal", "ext4", ("-O", "^has_journal")),
    Profile("xfs", "xfs"),
)
WORKLOAD = Workload(
    "two-steps",
    (Step("copy", "cp", measured=False), Step("write", "dd"), Step("delete", "rm")),
    summary="write, delete",
    write_bytes_estimate=1 << 20,
)


class Heard(Listener):
    """A listener that records the messages of a run, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def starts(self, spec: RunSpec, estimate: Estimate, finished_cells: int) -> None:
        self.lines.append(
            f"starts {estimate.cells_min}-{estimate.cells_max} after {finished_cells}"
        )

    def skips(self, profile: str, because: str) -> None:
        self.lines.append(f"skips {profile}: {because}")

    def cell_starts(self, cell: Cell, running: int) -> None:
        self.lines.append(f"cell {cell.id} of {running}")

    def cell_ends(self, record: CellRecord, remaining_s: tuple[float, float]) -> None:
        assert 0 <= remaining_s[0] <= remaining_s[1]
        self.lines.append(f"{record.status} {record.cell}")

    def repeats(self, cell: Cell, outside_sync_calls: int) -> None:
        self.lines.append(f"repeats {cell.id}: {outside_sync_calls}")

    def repeats_no_more(self, cell: Cell) -> None:
        self.lines.append(f"repeats no more after {cell.id}")

    def runs_again(self, repetition: int, machine: str) -> None:
        self.lines.append(f"runs again {repetition}, of {machine}")

    def ran_elsewhere(self, record: CellRecord) -> None:
        self.lines.append(f"ran elsewhere {record.cell}")

    def gives_up(self, profile: str, because: str) -> None:
        self.lines.append(f"gives up {profile}: {because}")

    def ends(self, folder: Path, stopped_because: str) -> None:
        self.lines.append(f"ends: {stopped_because}")

    def count(self, start: str) -> int:
        return sum(line.startswith(start) for line in self.lines)


@pytest.fixture(autouse=True)
def _in_a_roomy_host(roomy_host: None) -> None:
    pass


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., RunSpec]:
    """A spec with three profiles and three repetitions by default."""

    def make(**other: Any) -> RunSpec:
        values: dict[str, Any] = {
            "profiles": PROFILES,
            "workload": WORKLOAD,
            "folder": tmp_path / "run",
            "seed": 7,
        }
        values["stopping"] = StoppingRule(3, 3)
        return RunSpec(**(values | other))

    return make


@pytest.fixture
def go(tmp_path: Path, heard: Heard) -> Callable[..., RunOutcome]:
    """Execute a run under a lock of the test's own, so that tests and real runs do not conflict."""

    def run(spec: RunSpec, lab: FakeLab | None = None) -> RunOutcome:
        return execute(
            spec, Local(lab or FakeLab()), heard, lock=f"fscost.test.{os.getpid()}.{tmp_path.name}"
        )

    return run


@pytest.fixture
def workers_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "workers"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


@pytest.fixture
def run(tmp_path: Path, heard: Heard, workers_leave_nothing: None) -> Callable[..., RunOutcome]:
    """Execute a run on a cluster whose machines have the fake lab with these options."""

    def run(spec: RunSpec, machines: Machines, lab: str = "") -> RunOutcome:
        cells = tuple(next(repetitions(spec.profiles, spec.workload, spec.seed)))
        lock = f"fscost.test.{os.getpid()}.{tmp_path.name}"
        lab_spec = LabSpec("fake", fake=lab)
        question = Question(lab_spec, lock, cells, spec.disk_size_bytes, 0, spec.store)
        executor = Remote(machines, question, machines.said.append)
        return execute(spec, executor, heard, lock=None)

    return run
