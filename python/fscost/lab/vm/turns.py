"""An emulated guest takes turns with all that answers it, so that answers come at the same instruction each time.

Its clock counts its own instructions. QEMU's main loop, its 9p workers and the disk server take none of them, but how many the guest executes before an answer is
there depends on the host, unless it waits. On one processor it does when it is in the class that gives way to any other thread at once (SCHED_IDLE, sched(7)): the
request wakes the disk server, whose answer wakes the main loop, which interrupts the guest, all before its next instruction. An ordinary user may do that.
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


def take(guest_thread: int, processes: tuple[int, ...], processor: int) -> bool:
    """Put all threads of `processes` onto one processor, the guest's behind all others; false where the host does not let us, and it only repeats less."""
    try:
        for process in processes:
            for thread in Path(f"/proc/{process}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {processor})
        os.sched_setscheduler(guest_thread, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    except OSError:
        return False
    return True
