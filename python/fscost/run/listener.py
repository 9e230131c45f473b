"""Progress callbacks of a run. The run does not know whether a terminal, a log or a test
listens."""

from pathlib import Path

from fscost.matrix import Cell
from fscost.results import CellRecord
from fscost.run.estimate import Estimate
from fscost.run.spec import RunSpec


class Listener:
    """Base listener that ignores every event. No callback returns an answer to the run; override
    those of interest."""

    def starts(self, spec: RunSpec, estimate: Estimate, finished_cells: int) -> None:
        """The run starts. Only cells of an earlier part of a resumed run (`finished_cells`) have
        finished."""

    def prepares(self, what: str) -> None:
        """The workload's input is being prepared on the host."""

    def skips(self, profile: str, because: str) -> None:
        """A profile cannot run here."""

    def cell_starts(self, cell: Cell, running: int) -> None:
        """A cell begins; `running` profiles are still in the run."""

    def step(self, cell: Cell, name: str) -> None:
        """An interval of a running cell begins."""

    def cell_ends(self, record: CellRecord, remaining_s: tuple[float, float]) -> None:
        """A cell has ended. `remaining_s`: time left if the interval is narrow enough as early as
        possible, and time left if the run reaches its caps."""

    def repeats(self, cell: Cell, outside_sync_calls: int) -> None:
        """A cell is repeated, because other programs called sync meanwhile."""

    def repeats_no_more(self, cell: Cell) -> None:
        """A cell was disturbed in each attempt, so no further cell is repeated for that reason."""

    def runs_again(self, repetition: int, machine: str) -> None:
        """A repetition is run again from its beginning, because `machine`, which ran some of its
        cells, runs no further cell."""

    def ran_elsewhere(self, record: CellRecord) -> None:
        """A cell ran a second time, on another machine; a fact of the record says how it
        compares (`run/elsewhere.py`)."""

    def gives_up(self, profile: str, because: str) -> None:
        """A profile will not be tried again."""

    def ends(self, folder: Path, stopped_because: str) -> None:
        """The run has ended."""
