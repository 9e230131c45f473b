"""Examination of states in guests: for file systems and kernels that this machine does not have,
and for disks that it should not mount.

A state that stops the guest's kernel costs one guest, and is a finding.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Strict

from fscost import capture, typed
from fscost.crash.programs import About, Examine, Finished, Job
from fscost.errors import HostError

if TYPE_CHECKING:
    from fscost._native import Crash

PROGRAM = "fscost.crash.guest"
"""Module whose `main` runs in the guest."""
_READY_S = 300
_STATE_S = 300
"""Time for one step of an examination; an emulated guest takes about a second. After that, its
kernel hangs."""
_MOST_KILLED = 3
"""Guests that signals from outside may end, before the examination ends too."""


class Guest(Protocol):
    """A guest that runs `PROGRAM`. `files`: descriptors of the memory behind its disks."""

    @property
    def files(self) -> Sequence[int]: ...
    def send(self, value: dict[str, Any]) -> None:
        """Send one line."""

    def receive(self, limit_s: float) -> Any:
        """Return the guest's next line, or None if it is of no use any more."""

    @property
    def was_killed(self) -> bool:
        """True if a signal from outside ended it."""

    @property
    def failed(self) -> str:
        """Why the program ended, if it ended before the guest."""

    @property
    def last_words(self) -> list[str]:
        """What its kernel said last."""


Start = Callable[[About], AbstractContextManager[Guest]]
"""Starts a guest with the disks of a recording."""


_Pair = Annotated[tuple[str, str], Strict(strict=False)]
_File = Annotated[tuple[str, typed.Tuple[typed.Int64]], Strict(strict=False)]


@dataclass(frozen=True)
class _Snapshot(typed.Table):
    files: typed.Dict[_File]
    folders: typed.Dict[typed.Dict[str]]


@dataclass(frozen=True)
class _Answer(typed.Table):
    """What a guest found. It is untrusted."""

    mounts: bool
    is_clean: bool
    needs_repair: bool
    broken: typed.Tuple[_Pair]
    words: typed.Tuple[str]
    files: _Snapshot | None = None


@dataclass
class _Work:
    about: About
    crashes: "Callable[[tuple[int, ...]], Crash]"
    waiting: "Queue[tuple[int, Job]]"
    found: dict[int, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    killed: int = 0


def inside(start: Start, side_by_side: int, interrupt: Callable[[], None]) -> Examine:
    """Return what examines states in guests, several at a time. `interrupt` ends them all."""
    return partial(_answered, start, side_by_side, interrupt)


def _answered(
    start: Start,
    side_by_side: int,
    interrupt: Callable[[], None],
    about: About,
    jobs: Sequence[Job],
    finished: Finished,
) -> list[dict[str, Any]]:
    work = _Work(about, capture.crashes(Path(about["recording"])), Queue())
    for numbered in enumerate(jobs):
        work.waiting.put(numbered)

    def lane() -> None:
        while not work.stopped.is_set() and not work.waiting.empty():
            with start(about) as guest:
                _greeted(guest, about)
                _lived(guest, work, finished)

    lanes = max(1, min(side_by_side, len(jobs)))
    with ThreadPoolExecutor(lanes) as pool:
        try:
            for each in [pool.submit(lane) for _ in range(lanes)]:
                each.result()
        except BaseException:
            work.stopped.set()
            interrupt()
            raise
    return [work.found[number] for number in sorted(work.found)]


def _greeted(guest: Guest, about: About) -> None:
    guest.send(dict(about))
    if guest.receive(_READY_S) != {"ready": True}:
        raise _error(guest)


def _error(guest: Guest) -> HostError:
    said = " / ".join(filter(None, [guest.failed, *guest.last_words]))
    return HostError(
        f"the guest does not examine states: {said}",
        "`fscost doctor` checks the requirements of the VM lab",
    )


def _lived(guest: Guest, work: _Work, finished: Finished) -> None:
    """Let a guest examine states, until there are none or it dies of one."""
    while not work.stopped.is_set():
        try:
            number, job = work.waiting.get_nowait()
        except Empty:
            return
        answer = _asked(guest, work, job)
        if answer is None and (work.stopped.is_set() or guest.was_killed):
            # Not the state's fault.
            work.waiting.put((number, job))
            with work.lock:
                work.killed += 1
            if work.killed > _MOST_KILLED and not work.stopped.is_set():
                raise HostError(
                    f"{work.killed} guests were killed from outside",
                    "end other programs: the machine may lack memory",
                )
            return
        if answer is None and guest.failed:
            raise _error(guest)
        with work.lock:
            found = work.found[number] = answer or _stopped(guest)
            finished(number, found)
        if answer is None:
            return


def _asked(guest: Guest, work: _Work, job: Job) -> dict[str, Any] | None:
    """Return the answer to a job, or None if the guest gave none."""
    guest.send(dict(job))
    spares = len(work.about.get("spares", ()))
    while True:
        said = guest.receive(_STATE_S)
        match said:
            case {"disk": int(number)} if 0 <= number < len(guest.files) - spares:
                _fill(guest.files[number], number, work, job)
                guest.send({"filled": number})
            case {"blank": int(number)} if 0 <= number < len(guest.files):
                file = guest.files[number]
                size_bytes = os.fstat(file).st_size
                os.ftruncate(file, 0)
                os.ftruncate(file, size_bytes)
                guest.send({"filled": number})
            case {"answer": dict(value)}:
                try:
                    typed.read(_Answer, value)
                except typed.InvalidError:
                    return None
                return value
            case _:
                return None


def _fill(file: int, number: int, work: _Work, job: Job) -> None:
    """Fill a disk with what it holds in the state of a job: of a disk that is lost, an old one."""
    lost = job.get("lost", {})
    is_old = lost and (lost["how"], lost["number"]) == ("stale", number)
    at_ns, kept = (lost["begin_ns"], lost["all_kept"]) if is_old else (job["at_ns"], job["kept"])
    os.ftruncate(file, 0)
    crash = work.crashes(tuple(job["without"]))
    crash.export(at_ns, work.about["device"], kept, number, file, Path("state"))


def _stopped(guest: Guest) -> dict[str, Any]:
    """Return the finding about a state of which a guest died."""
    return {
        "mounts": False,
        "is_clean": False,
        "needs_repair": True,
        "stops_kernel": True,
        "broken": [],
        "files": None,
        "words": ["The guest's kernel stopped:", *(f"  {line}" for line in guest.last_words)],
    }
