"""Execution of cells on this machine, in sequence or side by side."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fscost.errors import HostError
from fscost.lab.base import Lab
from fscost.matrix import Cell
from fscost.run.executor.base import Ran, Starts, Steps
from fscost.run.measure import Task, measure
from fscost.workload import inputs
from fscost.workload.model import Workload


@dataclass(frozen=True)
class _Step:
    cell: Cell
    name: str


_News = _Step | Ran | BaseException


class Local:
    """Executor of cells in a lab on this machine."""

    def __init__(self, lab: Lab) -> None:
        self.site = lab

    def with_input(
        self, workload: Workload, folder: Path, on_progress: Callable[[str], None]
    ) -> Workload:
        """Prepare the workload's input in `folder`."""
        return replace(workload, input=inputs.prepare(workload, folder, on_progress))

    def repetitions_at_once(self, running: int) -> int:
        """Return 1: the run is estimated, and stopped, by whole repetitions."""
        return 1

    def lanes(self, running: int, repetitions: int) -> int:
        """Return as many as the lab supports."""
        return min(self.site.side_by_side, running)

    def another(self, machine: str) -> None:
        """Return None: there is only this machine."""

    def run_cells(self, cells: Sequence[Cell], starts: Starts, steps: Steps) -> Iterator[Ran]:
        """Yield each cell's result as the cell ends. On an exception, or when the caller closes the
        generator, interrupt the running cells and wait for them."""
        lab = self.site
        if min(lab.side_by_side, len(cells)) > 1:
            yield from _side_by_side(lab, cells, starts, steps)
            return
        for cell in cells:
            task = _started(starts, cell)
            begin = time.monotonic()
            result = measure(lab, task, lambda name, cell=cell: steps(cell, name))  # type: ignore[misc]
            yield Ran(result, time.monotonic() - begin)

    def close(self) -> None:
        """Do nothing: no machine is held."""


def _started(starts: Starts, cell: Cell) -> Task:
    task = starts(cell)
    if task.machine:
        raise HostError(
            f"repetition {cell.repetition} began on the machine {task.machine}, and cells of"
            " different machines are not compared",
            "continue with --on-cluster",
        )
    return task


def _side_by_side(lab: Lab, cells: Sequence[Cell], starts: Starts, steps: Steps) -> Iterator[Ran]:
    news: queue.SimpleQueue[_News] = queue.SimpleQueue()
    waiting = list(reversed(cells))
    running: list[threading.Thread] = []

    def begin() -> None:
        cell = waiting.pop()
        task = _started(starts, cell)
        thread = threading.Thread(target=_run, args=(lab, task, news), name=cell.id)
        running.append(thread)
        thread.start()

    try:
        while len(running) < lab.side_by_side and waiting:
            begin()
        left = len(cells)
        while left:
            match news.get():
                case _Step(cell, name):
                    steps(cell, name)
                case Ran() as ran:
                    left -= 1
                    yield ran
                    if waiting:
                        begin()
                case BaseException() as error:
                    raise error
    except BaseException:
        lab.interrupt()
        raise
    finally:
        for thread in running:
            thread.join()


def _run(lab: Lab, task: Task, news: "queue.SimpleQueue[_News]") -> None:
    begin = time.monotonic()
    try:
        result = measure(lab, task, lambda name: news.put(_Step(task.cell, name)))
    except BaseException as error:  # noqa: BLE001  # re-raised where the queue is read
        news.put(error)
    else:
        news.put(Ran(result, time.monotonic() - begin))
