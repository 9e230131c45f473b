"""An emulated guest takes turns with all that answers it, so that answers come at the same instruction each time.

Its clock counts its own instructions. QEMU's main loop, its 9p workers, the disk server and who passes its words on take none of them, but how many the guest executes before an answer is
there depends on the host, unless it waits. On one processor it does when whatever answers is of a higher class (sched(7)): the request wakes the disk server, whose answer
wakes the main loop, which interrupts the guest, all before its next instruction. Where the host lets us, those that answer are real-time (SCHED_FIFO), and the guest keeps its part among other
programs. An ordinary user can only make the guest give way to any other thread (SCHED_IDLE): on a host without an idle processor it then hardly goes on.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Processors:
    """Those that this process may use, each for one guest as long as there are enough."""

    def __init__(self) -> None:
        usable = sorted(os.sched_getaffinity(0))
        # Another fscost beside this one would else begin with the same.
        first = os.getpid() % len(usable)
        self._guests = Counter(dict.fromkeys(usable[first:] + usable[:first], 0))
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._guests)

    @contextmanager
    def one(self) -> Iterator[int]:
        """The least used, until the block ends."""
        with self._lock:
            chosen = min(self._guests, key=lambda number: self._guests[number])
            self._guests[chosen] += 1
        try:
            yield chosen
        finally:
            with self._lock:
                self._guests[chosen] -= 1


def take(guest_thread: int, processes: tuple[int, ...], threads: tuple[int, ...], processor: int) -> bool:
    """Put all threads of `processes`, and `threads` of this one, onto one processor, the guest's behind all others; false where the host does not let us, and it
    only repeats less."""
    try:
        theirs = [int(thread.name) for process in processes for thread in Path(f"/proc/{process}/task").iterdir()]
        answering = {*theirs, *threads} - {guest_thread}
        for thread in {*answering, guest_thread}:
            os.sched_setaffinity(thread, {processor})
        try:
            for thread in answering:
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            os.sched_setscheduler(guest_thread, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    except OSError:
        return False
    return True
