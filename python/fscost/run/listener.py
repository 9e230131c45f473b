"""What a run tells while it goes on. A terminal, a log or a test listens; the run does not know
which."""

from pathlib import Path

from fscost.matrix import Cell
from fscost.results import CellRecord
from fscost.run.need import Estimate
from fscost.run.spec import RunSpec


class Listener:
    """All of it is news; nothing is asked. This one does not care; override what you want to
    hear."""

    def starts(self, spec: RunSpec, estimate: Estimate, finished_cells: int) -> None:
        """Nothing has been run yet but what an earlier part finished."""

    def prepares(self, what: str) -> None:
        """The workload's input is being made on the host."""

    def skips(self, profile: str, because: str) -> None:
        """A profile cannot run here."""

    def cell_starts(self, cell: Cell, running: int) -> None:
        """One of `running` profiles that are still in."""

    def step(self, cell: Cell, name: str) -> None:
        """An interval of a running cell begins."""

    def cell_ends(self, record: CellRecord, remaining_s: tuple[float, float]) -> None:
        """Remaining: if the interval is narrow as early as it may be, and at the caps."""

    def gives_up(self, profile: str, because: str) -> None:
        """A profile will not be tried again."""

    def ends(self, folder: Path, stopped_because: str) -> None:
        """No more cells."""
