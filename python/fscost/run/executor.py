"""Execution of one repetition's cells, in sequence or side by side. All callbacks run in one
thread."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fscost.lab.base import CellResult, Lab
from fscost.matrix import Cell
from fscost.run.measure import Task, measure


@dataclass(frozen=True)
class Ran:
    """Result of a finished cell, and how long the cell took."""

    result: CellResult
    duration_s: float


@dataclass(frozen=True)
class _Step:
    cell: Cell
    name: str


_News = _Step | Ran | BaseException

Starts = Callable[[Cell], Task]
"""Callback that is called as each cell begins and returns the task to run."""
Steps = Callable[[Cell, str], None]


def run_cells(lab: Lab, cells: Sequence[Cell], starts: Starts, steps: Steps) -> Iterator[Ran]:
    """Yield each cell's result as the cell ends. On an exception, or when the caller closes the
    generator, interrupt the running cells and wait for them."""
    if min(lab.side_by_side, len(cells)) <= 1:
        for cell in cells:
            task = starts(cell)
            begin = time.monotonic()
            result = measure(lab, task, lambda name, cell=cell: steps(cell, name))  # type: ignore[misc]
            yield Ran(result, time.monotonic() - begin)
        return
    yield from _side_by_side(lab, cells, starts, steps)


def _side_by_side(lab: Lab, cells: Sequence[Cell], starts: Starts, steps: Steps) -> Iterator[Ran]:
    news: queue.SimpleQueue[_News] = queue.SimpleQueue()
    waiting = list(reversed(cells))
    running: list[threading.Thread] = []

    def begin() -> None:
        cell = waiting.pop()
        thread = threading.Thread(target=_run, args=(lab, starts(cell), news), name=cell.id)
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
