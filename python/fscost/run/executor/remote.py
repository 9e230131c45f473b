"""Execution of cells on the machines of a cluster. A cell of a lost machine runs again on another;
each cell is counted once."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from pathlib import Path
from typing import Protocol

from fscost import files
from fscost.errors import HostError
from fscost.lab.base import CellResult
from fscost.matrix import Cell
from fscost.run.executor.base import Gone, Ran, Starts, Steps
from fscost.run.executor.survey import ClusterSite, Question, Report, Reports
from fscost.run.executor.worker import Outcome
from fscost.run.measure import Task
from fscost.run.record import RUN_ENDING_KINDS
from fscost.workload.model import Workload

LOST = "machine-lost"
"""Kind of failure of a cell whose machines were lost."""
_MOST_LOSSES = 3


@dataclass(frozen=True)
class Joined:
    """A machine is ready to run cells."""

    machine: str


@dataclass(frozen=True)
class Ended:
    """A cell has ended. `ticket` is the one that it began with."""

    ticket: int
    outcome: Outcome


@dataclass(frozen=True)
class Lost:
    """A machine runs no further cell, and those that it ran have no result."""

    machine: str
    because: str


class LostError(Exception):
    """Error for a machine that was lost while it answered."""


class Cluster(Protocol):
    """Machines that carry out tasks, and news of them."""

    def ask(self, question: Question) -> Reports:
        """Ask each machine whether it can run the cells of a run."""
        ...

    def hire(self, question: Question, machines: Mapping[str, Report]) -> None:
        """Reserve machines. Each joins, or is lost."""
        ...

    def begin(self, machine: str, ticket: int, task: Task) -> None:
        """Begin a cell on a machine that has joined."""
        ...

    def next(self) -> Joined | Ended | Lost:
        """Wait for the next news."""
        ...

    def read(self, machine: str, cell: str, name: str, offset: int) -> bytes:
        """Read a piece of a file of a finished cell. Raises LostError."""
        ...

    def forget(self, machine: str, cell: str) -> None:
        """Let the machine remove the files of a finished cell."""
        ...

    def dismiss(self, machine: str) -> None:
        """Release a machine, and end the cells that it runs. There is no further news of it."""
        ...

    def close(self) -> None:
        """Release all machines, and end the cells that they run."""
        ...


@dataclass
class _Chain:
    """Cells that run one after another. `task` is that of the first cell, once it has begun."""

    cells: deque[Cell]
    task: Task | None = None
    lost: list[str] = field(default_factory=list)
    """Machines that were lost while they ran the first cell."""


class Remote:
    """Executor of cells on a cluster."""

    def __init__(self, cluster: Cluster, question: Question, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._question = question
        self._say = say
        self.site = ClusterSite(cluster.ask, question, say)
        self._free: dict[str, int] = {}
        """Lanes without a cell, by machine that has joined."""
        self._is_hired = False
        self._tickets = count()
        self._running: dict[int, str] = {}
        """Machine of each running cell, by ticket."""
        self._ended: dict[int, tuple[str, Outcome | None]] = {}
        """Machine and outcome of cells that no generator has taken; None if the machine was
        lost."""

    def with_input(
        self, workload: Workload, folder: Path, on_progress: Callable[[str], None]
    ) -> Workload:
        """Leave the input to the machines: the same recipe makes the same bytes."""
        return workload

    def repetitions_at_once(self, running: int) -> int:
        """Return as many repetitions as keep all machines busy."""
        if self.site.is_same_everywhere:
            return -(-self.site.side_by_side // max(1, running))
        return len(self.site.machines)

    def lanes(self, running: int, repetitions: int) -> int:
        """Return the number of lanes that so many cells use."""
        if self.site.is_same_everywhere:
            return min(self.site.side_by_side, running * repetitions)
        return min(len(self.site.machines), repetitions)

    def another(self, machine: str) -> str | None:
        """Return another machine, if its guests should write the same bytes."""
        if not self.site.is_same_everywhere:
            return None
        return next((name for name in self.site.machines if name != machine), None)

    def run_cells(
        self, cells: Sequence[Cell], starts: Starts, steps: Steps
    ) -> Iterator[Ran | Gone]:
        """Yield each cell's result as the cell ends. On an exception, or when the caller closes the
        generator, end the running cells and release all machines."""
        if not self._is_hired:
            self._is_hired = True
            self._cluster.hire(self._question, self.site.machines)
        waiting = deque(_Chain(deque(each)) for each in self._chains(cells))
        mine: dict[int, _Chain] = {}
        try:
            while waiting or mine:
                yield from self._begin(waiting, mine, starts, steps)
                ticket = next((each for each in mine if each in self._ended), None)
                if ticket is None:
                    if waiting or mine:
                        self._hear()
                    continue
                chain = mine.pop(ticket)
                ran = self._ran(chain, *self._ended.pop(ticket))
                if ran is not None:
                    chain.cells.popleft()
                    chain.task, chain.lost = None, []
                    yield ran
                if chain.cells:
                    waiting.appendleft(chain)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release all machines."""
        self._running.clear()
        self._free.clear()
        self._cluster.close()

    def _chains(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Each cell alone; or, if machines must not be compared, those of a repetition together."""
        if self.site.is_same_everywhere:
            return [[cell] for cell in cells]
        return [list(group) for _, group in groupby(cells, key=lambda cell: cell.repetition)]

    def _begin(
        self, waiting: deque[_Chain], mine: dict[int, _Chain], starts: Starts, steps: Steps
    ) -> Iterator[Gone]:
        """Begin as many cells as there are free lanes. Chains whose machine is gone are dropped."""
        busy = []
        while waiting and any(self._free.values()):
            chain = waiting.popleft()
            if chain.task is None:
                chain.task = starts(chain.cells[0])
            cell, machine = chain.task.cell, chain.task.machine
            if machine is None:
                machine = max(self._free, key=lambda name: self._free[name])
            elif machine not in self.site.machines:
                yield Gone(cell.repetition, machine)
                continue
            if not self._free.get(machine):
                busy.append(chain)
                continue
            ticket = next(self._tickets)
            self._free[machine] -= 1
            self._running[ticket] = machine
            mine[ticket] = chain
            steps(cell, f"on {machine}")
            self._cluster.begin(machine, ticket, chain.task)
        waiting.extendleft(reversed(busy))

    def _hear(self) -> None:
        """Wait for one piece of news. A second outcome of a cell is ignored."""
        match self._cluster.next():
            case Joined(machine) if machine in self.site.machines:
                self._free[machine] = self.site.machines[machine].lanes
            case Ended(ticket, outcome) if ticket in self._running:
                machine = self._running.pop(ticket)
                self._free[machine] += 1
                self._ended[ticket] = machine, outcome
            case Lost(machine, because):
                self._lose(machine, because)

    def _lose(self, machine: str, because: str) -> None:
        """Count on a machine no more. Its cells run again elsewhere."""
        if self.site.machines.pop(machine, None) is None:
            return
        self._cluster.dismiss(machine)
        self._free.pop(machine, None)
        lost = [ticket for ticket, name in self._running.items() if name == machine]
        for ticket in lost:
            self._ended[ticket] = self._running.pop(ticket), None
        again = (
            f"; {len(lost)} cell{'s' * (len(lost) > 1)} will run again elsewhere" if lost else ""
        )
        self._say(f"machine {machine} is out of the run: {because}{again}")
        if not self.site.machines:
            raise HostError(
                f"no machine of the cluster is left; the last was {machine}: {because}",
                "start the workers again",
            )

    def _ran(self, chain: _Chain, machine: str, outcome: Outcome | None) -> Ran | None:
        """Return the result of a chain's first cell, or None if it must run again."""
        assert chain.task is not None
        task = chain.task
        if outcome is not None and outcome.error is not None:
            raise outcome.error
        if outcome is not None and (because := _no_more(outcome)):
            self._lose(machine, because)
            return None
        if outcome is not None and outcome.result is not None:
            try:
                self._fetch(machine, task, outcome)
            except LostError as error:
                self._lose(machine, str(error))
            else:
                return Ran(_here(outcome.result, task), outcome.duration_s, machine)
        chain.lost.append(machine)
        if len(chain.lost) < _MOST_LOSSES:
            return None
        because = f"the machines {', '.join(chain.lost)} were lost while they ran it"
        return Ran(CellResult(task.cell, "failed", because, kind=LOST), 0.0, machine)

    def _fetch(self, machine: str, task: Task, outcome: Outcome) -> None:
        """Write the files of a finished cell into its folder here."""
        cell, folder = task.cell.id, task.options.cell_dir
        try:
            for name, content in outcome.files.items():
                files.make_folder((folder / name).parent)
                with (folder / name).open("wb") as file:
                    for piece in self._pieces(machine, cell, name, content):
                        file.write(piece)
        except OSError as error:
            raise HostError(
                f"{folder} cannot be written to: {error.strerror}", "free some space there"
            ) from error
        if any(isinstance(content, int) for content in outcome.files.values()):
            self._cluster.forget(machine, cell)

    def _pieces(self, machine: str, cell: str, name: str, content: bytes | int) -> Iterator[bytes]:
        """Yield the content of a file, which the machine still has if only its size is known."""
        if isinstance(content, bytes):
            yield content
            return
        offset = 0
        while offset < content:
            piece = self._cluster.read(machine, cell, name, offset)
            if not piece:
                raise LostError(f"{name} of {cell} is shorter than it was")
            offset += len(piece)
            yield piece


def _no_more(outcome: Outcome) -> str | None:
    """Return why the machine can run no further cell."""
    if outcome.result is not None and outcome.result.kind in RUN_ENDING_KINDS:
        return outcome.result.because
    return outcome.no_cell_runs or None


def _here(result: CellResult, task: Task) -> CellResult:
    """Return the result with the paths of this machine."""
    folder = task.options.cell_dir
    return replace(
        result,
        cell=task.cell,
        recording=None if result.recording is None else folder / result.recording,
        output=None if result.output is None else folder / result.output,
    )
