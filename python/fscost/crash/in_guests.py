"""Jobs for guests: states, and recoveries that are recorded and cut."""

import os
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Protocol

from fscost import capture
from fscost.crash import sizes
from fscost.crash.guests import STATE_S, Guest, Site, answered, failure, greet, in_lanes
from fscost.crash.programs import About, Examine, Finished, Job
from fscost.crash.recovery import MARKS, second_states


class RecordedGuest(Guest, Protocol):
    """A guest whose disks are recorded."""

    def mark(self, name: str) -> None:
        """Set a mark in the recording."""

    def finish(self) -> None:
        """End the guest and its recording."""


Record = Callable[[About, Sequence[int], Path], AbstractContextManager[RecordedGuest]]
"""Starts a guest whose disks hold these images, and are recorded to a new file."""


@dataclass(frozen=True)
class _Both:
    site: Site
    record: Record


def inside(site: Site, record: Record) -> Examine:
    """Return what examines states in guests, several at a time."""
    return partial(_answered, _Both(site, record))


def _answered(both: _Both, about: About, jobs: Sequence[Job], finished: Finished) -> None:
    # The jobs of a call are all of one kind.
    if "again" not in jobs[0]:
        answered(both.site, about, jobs, finished)
        return
    with tempfile.TemporaryDirectory(prefix="fscost-") as folder:
        recordings = [
            Path(job["again"].get("recording", Path(folder, str(place))))
            for place, job in enumerate(jobs)
        ]
        _record_all(both, about, jobs, recordings)
        _examined(both.site, about, jobs, recordings, finished)


def _record_all(both: _Both, about: About, jobs: Sequence[Job], recordings: Sequence[Path]) -> None:
    """Record the recoveries of states, each in a guest of its own."""
    waiting: Queue[tuple[Job, Path]] = Queue()
    for pair in zip(jobs, recordings, strict=True):
        waiting.put(pair)
    stopped = threading.Event()
    crashes = capture.crashes(Path(about["recording"]))

    def lane() -> None:
        while not stopped.is_set():
            try:
                job, recording = waiting.get_nowait()
            except Empty:
                return
            with ExitStack() as stack:
                images = []
                for number, disk in enumerate(about["disks"]):
                    image = os.memfd_create(disk["name"])
                    stack.callback(os.close, image)
                    crash, device = crashes(tuple(job["without"])), about["device"]
                    kept, path = job["kept"], Path("state")
                    crash.export(job["at_ns"], device, kept, number, image, path)
                    images.append(image)
                guest = stack.enter_context(both.record(about, images, recording))
                greet(guest, about)
                _recover(guest, job)

    in_lanes(both.site, about, len(jobs), stopped, lane)


def _recover(guest: RecordedGuest, job: Job) -> None:
    """Let a guest mount and unmount its disks."""
    guest.send(dict(job))
    marks = list(MARKS)
    for _ in range(len(guest.files) + len(marks) + 1):
        match guest.receive(STATE_S):
            case {"disk": int(number)}:
                guest.send({"filled": number})
            case {"mark": str(name)} if marks and name == marks[0]:
                guest.mark(marks.pop(0))
                guest.send({"marked": name})
            case {"answer": _} if not marks:
                guest.finish()
                return
            case _:
                break
    raise failure(guest)


def _examined(
    site: Site,
    about: About,
    jobs: Sequence[Job],
    recordings: Sequence[Path],
    finished: Finished,
) -> None:
    """Cut the recoveries, and examine what is left."""
    owners: list[int] = []
    seconds: list[dict[str, Any]] = []
    for place, (job, recording) in enumerate(zip(jobs, recordings, strict=True)):
        sizes.check(recording, about["device"])
        for second in second_states(recording, about["device"], job["again"]):
            owners.append(place)
            seconds.append(second)
    asked = [
        {**_without_again(jobs[place]), **second, "recording": str(recordings[place])}
        for place, second in zip(owners, seconds, strict=True)
    ]
    left = Counter(owners)
    found: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)

    def one(number: int, answer: dict[str, Any]) -> None:
        place = owners[number]
        found[place][number] = {**seconds[number], "found": answer}
        left[place] -= 1
        if left[place] == 0:
            own = found.pop(place)
            finished(place, {"again": [own[each] for each in sorted(own)]})

    for place in range(len(jobs)):
        if place not in left:
            finished(place, {"again": []})
    answered(site, about, asked, one)


def _without_again(job: Job) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name != "again"}
