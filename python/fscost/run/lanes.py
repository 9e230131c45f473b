"""Cells of one repetition, one after the other or several side by side; told of in one thread."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fscost.lab.base import CellResult, Lab, LabOptions
from fscost.matrix import Cell


@dataclass(frozen=True)
class Ran:
    """A cell that has ended, and how long it took."""

    result: CellResult
    duration_s: float


@dataclass(frozen=True)
class _Step:
    cell: Cell
    name: str


_News = _Step | Ran | BaseException

Starts = Callable[[Cell], LabOptions]
"""Told of each cell as it begins; says how it is run."""
Steps = Callable[[Cell, str], None]


def run_cells(lab: Lab, cells: Sequence[Cell], starts: Starts, steps: Steps) -> Iterator[Ran]:
    """Each as it ends. When an exception comes, or the caller is done with it, what still runs is
    ended and waited for."""
    if min(lab.side_by_side, len(cells)) <= 1:
        for cell in cells:
            options = starts(cell)
            begin = time.monotonic()
            result = lab.run(cell, options, lambda name, cell=cell: steps(cell, name))  # type: ignore[misc]
            yield Ran(result, time.monotonic() - begin)
        return
    yield from _side_by_side(lab, cells, starts, steps)


def _side_by_side(lab: Lab, cells: Sequence[Cell], starts: Starts, steps: Steps) -> Iterator[Ran]:
    news: queue.SimpleQueue[_News] = queue.SimpleQueue()
    waiting = list(reversed(cells))
    running: list[threading.Thread] = []

    def begin() -> None:
        cell = waiting.pop()
        thread = threading.Thread(target=_run, args=(lab, cell, starts(cell), news), name=cell.id)
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


def _run(lab: Lab, cell: Cell, options: LabOptions, news: "queue.SimpleQueue[_News]") -> None:
    begin = time.monotonic()
    try:
        result = lab.run(cell, options, lambda name: news.put(_Step(cell, name)))
    except BaseException as error:  # noqa: BLE001  # raised again where the news is read
        news.put(error)
    else:
        news.put(Ran(result, time.monotonic() - begin))
