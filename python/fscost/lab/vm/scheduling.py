"""Scheduling of an emulated guest and the threads that answer it, in turns, so that answers arrive
at the same instruction each time.

The guest's clock counts its own instructions. QEMU's main loop, its 9p workers, the disk server and
the relay threads execute none of these. However, the number of instructions that the guest executes
before an answer arrives depends on the host, unless the guest waits. It waits if all of them run on
one processor and the answering threads have a higher scheduling class (sched(7)): the request wakes
the disk server, whose answer wakes the main loop, which interrupts the guest, all before the
guest's next instruction.

If the host permits it, the answering threads are real-time (SCHED_FIFO), and the guest keeps its
share among other programs. Without that privilege, only the guest's class can be lowered, so that
it yields to any other thread (SCHED_IDLE): on a host without an idle processor, such a guest may
starve.
"""

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_LOOK_S = 5.0
_LOOKS = 6
_MOST = 0.8
"""Fraction of processor time. Real-time threads that exceed it in `_LOOKS` checks in a row serve a
guest that floods them."""


class Processors:
    """Processors that this process may use, each for one guest as long as there are enough."""

    def __init__(self) -> None:
        usable = sorted(os.sched_getaffinity(0))
        # Otherwise, concurrent fscost processes would all begin with the same processor.
        first = os.getpid() % len(usable)
        self._guests = Counter(dict.fromkeys(usable[first:] + usable[:first], 0))
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._guests)

    @contextmanager
    def one(self) -> Iterator[int]:
        """Reserve the least used processor until the block ends."""
        with self._lock:
            chosen = min(self._guests, key=lambda number: self._guests[number])
            self._guests[chosen] += 1
        try:
            yield chosen
        finally:
            with self._lock:
                self._guests[chosen] -= 1


@dataclass(frozen=True)
class Party:
    """The thread of a guest, and the threads that answer it: all threads of `processes`, and
    `threads` of this process."""

    guest_thread: int
    processes: tuple[int, ...]
    threads: tuple[int, ...]

    def pin(self, processor: int) -> bool:
        """Move all threads to one processor, and schedule the guest's behind all others. Return
        False if the host does not permit it; the run is then less repeatable."""
        try:
            answering = self._answering()
            for thread in {*answering, self.guest_thread}:
                os.sched_setaffinity(thread, {processor})
            try:
                _schedule(answering, os.SCHED_FIFO, 1)
            except PermissionError:
                _schedule({self.guest_thread}, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK, 0)
        except OSError:
            return False
        return True

    @contextmanager
    def bounded(
        self, left: Callable[[], None], look_s: float = _LOOK_S, most: float = _MOST
    ) -> Iterator[None]:
        """Watch until the block ends: if the answering threads run without a pause, they leave the
        real-time class, and `left` is called.

        Otherwise a guest that floods its 9p share would take nearly all of a processor from all
        other programs (sched(7), real-time throttling).
        """
        ended = threading.Event()

        def watch() -> None:
            before, hot = self._answering_ns(), 0
            while not ended.wait(look_s):
                now = self._answering_ns()
                hot = hot + 1 if now - before > most * look_s * 1e9 else 0
                before = now
                if hot == _LOOKS:
                    with contextlib.suppress(OSError):
                        _schedule(self._answering(), os.SCHED_OTHER, 0)
                    left()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _answering(self) -> set[int]:
        theirs = [
            int(thread.name)
            for process in self.processes
            for thread in Path(f"/proc/{process}/task").iterdir()
        ]
        return {*theirs, *self.threads} - {self.guest_thread}

    def _answering_ns(self) -> int:
        """Return the processor time of the answering threads
        (Documentation/scheduler/sched-stats.rst)."""
        total = 0
        with contextlib.suppress(OSError):
            for thread in self._answering():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    total += int(Path(f"/proc/{thread}/schedstat").read_text().split()[0])
        return total


def _schedule(threads: Iterable[int], policy: int, priority: int) -> None:
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))
