"""Interface of an executor: it runs the cells of a run, on this machine or on others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fscost.lab.base import CellResult, Site
from fscost.matrix import Cell
from fscost.run.measure import Task
from fscost.workload.model import Workload


@dataclass(frozen=True)
class Ran:
    """Result of a finished cell, how long the cell took, and the machine that ran it (empty: this
    one)."""

    result: CellResult
    duration_s: float
    machine: str = ""


@dataclass(frozen=True)
class Gone:
    """A machine that began a repetition and runs no further cell. The rest of the repetition was
    not run, because it could not be compared with those cells."""

    repetition: int
    machine: str


Starts = Callable[[Cell], Task]
"""Callback that is called as each cell begins and returns the task to run."""
Steps = Callable[[Cell, str], None]


class Executor(Protocol):
    """Where the cells of a run are executed. All callbacks run in the caller's thread."""

    @property
    def site(self) -> Site:
        """Answers about the place, or about all machines together."""
        ...

    def with_input(
        self, workload: Workload, folder: Path, on_progress: Callable[[str], None]
    ) -> Workload:
        """Prepare the workload's input once, outside of every measurement, or leave it to the
        machines."""
        ...

    def repetitions_at_once(self, running: int) -> int:
        """Number of repetitions of `running` profiles to run together, if so many are certain to
        run."""
        ...

    def lanes(self, running: int, repetitions: int) -> int:
        """Number of cells that run at once, of so many repetitions of `running` profiles."""
        ...

    def another(self, machine: str) -> str | None:
        """Return another machine, whose cells may be compared with those of `machine`; None if
        there is none."""
        ...

    def run_cells(
        self, cells: Sequence[Cell], starts: Starts, steps: Steps
    ) -> Iterator[Ran | Gone]:
        """Yield each cell's result as the cell ends. On an exception, or when the caller closes the
        generator, end the running cells."""
        ...

    def close(self) -> None:
        """Release all machines. No cell runs afterwards."""
        ...
