"""What the workloads of `fscost crash` say when they have made a promise."""

import os
import time
from pathlib import Path

PAUSE_S = 0.015
"""Pause after each promise: a power cut can come between it and the next request."""
_GUEST_DISKS = Path("/dev/fscost")
"""Exists in guests only (crates/agent/src/guest.rs)."""
_WRITTEN, _DISCARDED, _FLUSHES = 6, 13, 15
"""Places in `/sys/block/…/stat` (Documentation/block/stat.rst)."""


def say_kept(pause_s: float | None = None, /, **promised: int) -> None:
    """Say that the calls which promise these have returned, and when."""
    now_ns, completed = time.clock_gettime_ns(time.CLOCK_REALTIME), _completed()
    lines = (f"kept {now_ns} {kind} {number}{completed}\n" for kind, number in promised.items())
    os.write(1, "".join(lines).encode())
    time.sleep(PAUSE_S if pause_s is None else pause_s)


def is_guest() -> bool:
    """True in a guest."""
    return _GUEST_DISKS.is_dir()


def _completed() -> str:
    """Return what each disk of a guest has completed: sectors written and discarded, and flushes.
    The clock of a guest is not that of its recording, which has the same requests."""
    disks = sorted(_GUEST_DISKS.iterdir()) if is_guest() else []
    return "".join(f" {disk.name}={_counts(disk.resolve().name)}" for disk in disks)


def _counts(device: str) -> str:
    counts = Path(f"/sys/block/{device}/stat").read_text().split()
    return ",".join(counts[place] for place in (_WRITTEN, _DISCARDED, _FLUSHES))
