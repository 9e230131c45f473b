"""Examination of states in guests: for file systems and kernels that this machine does not have,
and for disks that it should not mount.

A state that stops the guest's kernel costs one guest, and is a finding.
"""

import os
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field, Strict

from fscost import capture, typed
from fscost.crash import sizes
from fscost.crash.explore import MOST_PLACE
from fscost.crash.programs import About, Finished, Job
from fscost.crash.verdict import KINDS, LOST_S
from fscost.errors import HostError

if TYPE_CHECKING:
    from fscost._native import Crash

PROGRAM = "fscost.crash.guest"
"""Module whose `main` runs in the guest."""
_READY_S = 300
STATE_S = 300
"""Time for one step of an examination; an emulated guest takes about a second. After that, its
kernel hangs."""
_USES = 4
"""Uses of each disk in an examination: three, and one of an empty disk."""
_MOST_WORDS = 1 << 14
"""Characters that are kept of what programs said about a state."""
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_MOST_OPEN = 8
"""Recordings that are read at a time."""
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


@dataclass(frozen=True)
class Site:
    """Where guests come from. `start`: starts one with the disks of a recording; `interrupt`: ends
    them all."""

    start: Callable[[About], AbstractContextManager[Guest]]
    side_by_side: int
    interrupt: Callable[[], None]


_Key = Annotated[str, Field(pattern=r"^[0-9]{1,20}:[0-9]{0,10}$")]
_Sectors = typed.Tuple[typed.Int64] | None
_File = Annotated[tuple[str, _Sectors], Strict(strict=False)]
_Pair = Annotated[tuple[str, str], Strict(strict=False)]
_Folder = Annotated[dict[str, _Key], typed.FAIL_FAST]


@dataclass(frozen=True)
class _Snapshot(typed.Table):
    files: Annotated[dict[_Key, _File], typed.FAIL_FAST]
    folders: Annotated[dict[_Key, _Folder], typed.FAIL_FAST]


@dataclass(frozen=True)
class _Answer(typed.Table):
    """What a guest found. It is untrusted, and nothing else of it is kept."""

    mounts: bool
    is_clean: bool
    needs_repair: bool
    broken: typed.Tuple[_Pair]
    words: typed.Tuple[str]
    files: _Snapshot | None = None
    repair_s: Annotated[float, Field(ge=0)] = 0.0

    def __post_init__(self) -> None:
        for kind, where in self.broken:
            if kind not in KINDS or (kind in LOST_S and _SECONDS.fullmatch(where) is None):
                raise ValueError("is no kind of broken promise")

    @property
    def kept(self) -> dict[str, Any]:
        """What is kept of it."""
        files = self.files and {"files": self.files.files, "folders": self.files.folders}
        left = _MOST_WORDS
        words = []
        for each in self.words:
            if left > 0:
                words.append(each[:left])
                left -= len(each) + 1
        return {
            "mounts": self.mounts,
            "is_clean": self.is_clean,
            "needs_repair": self.needs_repair,
            "broken": [[kind, where[:MOST_PLACE]] for kind, where in self.broken],
            "files": files,
            "words": words,
            "repair_s": self.repair_s,
        }


@dataclass
class _Work:
    about: About
    jobs: Sequence[Job]
    waiting: "Queue[int]" = field(default_factory=Queue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    killed: int = 0
    opened: Callable[[Path], "Callable[[tuple[int, ...]], Crash]"] = field(
        default_factory=lambda: lru_cache(_MOST_OPEN)(capture.crashes)
    )

    def crash(self, job: Job) -> "Crash":
        """Return the states of a job: of the recording, or of a recovery that was recorded."""
        recording = Path(job.get("recording", self.about["recording"]))
        with self.lock:
            return self.opened(recording)(tuple(job["without"]))


def answered(site: Site, about: About, jobs: Sequence[Job], finished: Finished) -> None:
    """Examine states."""
    work = _Work(about, jobs)
    for number in range(len(jobs)):
        work.waiting.put(number)

    def lane() -> None:
        while not work.stopped.is_set() and not work.waiting.empty():
            with site.start(about) as guest:
                greet(guest, about)
                _lived(guest, work, finished)

    in_lanes(site, about, len(jobs), work.stopped, lane)


def in_lanes(
    site: Site, about: About, count: int, stopped: threading.Event, lane: Callable[[], None]
) -> None:
    """Run lanes side by side. If one fails, the others end too."""
    most = max(1, min(site.side_by_side, count))
    lanes = sizes.side_by_side(Path(about["recording"]), most)
    with ThreadPoolExecutor(lanes) as pool:
        try:
            for each in [pool.submit(lane) for _ in range(lanes)]:
                each.result()
        except BaseException:
            stopped.set()
            site.interrupt()
            raise


def greet(guest: Guest, about: About) -> None:
    """Wait until a guest takes jobs."""
    guest.send(dict(about))
    if guest.receive(_READY_S) != {"ready": True}:
        raise failure(guest)


def failure(guest: Guest) -> HostError:
    """Return why a guest is of no use."""
    said = " / ".join(filter(None, [guest.failed, *guest.last_words]))
    return HostError(
        f"the guest does not examine states: {said}",
        "`fscost doctor` checks the requirements of the VM lab",
    )


def _lived(guest: Guest, work: _Work, finished: Finished) -> None:
    """Let a guest examine states, until there are none or it dies of one."""
    while not work.stopped.is_set():
        try:
            number = work.waiting.get_nowait()
        except Empty:
            return
        answer = _asked(guest, work, work.jobs[number])
        if answer is None and (work.stopped.is_set() or guest.was_killed):
            # Not the state's fault.
            work.waiting.put(number)
            with work.lock:
                work.killed += 1
            if work.killed > _MOST_KILLED and not work.stopped.is_set():
                raise HostError(
                    f"{work.killed} guests were killed from outside",
                    "end other programs: the machine may lack memory",
                )
            return
        if answer is None and guest.failed:
            raise failure(guest)
        with work.lock:
            finished(number, answer or _stopped(guest))
        if answer is None:
            return


def _asked(guest: Guest, work: _Work, job: Job) -> dict[str, Any] | None:
    """Return the answer to a job, or None if the guest gave none."""
    guest.send(dict(job))
    spares = len(work.about.get("spares", ()))
    for _ in range(_USES * len(guest.files) + 1):
        match guest.receive(STATE_S):
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
                    return typed.read(_Answer, value).kept
                except typed.InvalidError:
                    return None
            case _:
                return None
    return None


def _fill(file: int, number: int, work: _Work, job: Job) -> None:
    """Fill a disk with what it holds in the state of a job: of a disk that is lost, an old one."""
    lost = job.get("lost", {})
    is_old = lost and (lost["how"], lost["number"]) == ("stale", number)
    at_ns, kept = (lost["begin_ns"], lost["all_kept"]) if is_old else (job["at_ns"], job["kept"])
    os.ftruncate(file, 0)
    work.crash(job).export(at_ns, work.about["device"], kept, number, file, Path("state"))


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
