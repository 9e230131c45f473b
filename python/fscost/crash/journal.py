"""Answers that examiners have given, kept in the run's folder until all are there: `crash.journal`.

The first line says what was asked. Each other line is a job's key, the digest of its answer, and
the answer: a line that was being written when the program was killed does not count.
"""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from fscost import files, typed
from fscost.crash.explore import Limits
from fscost.crash.programs import About, Answered, Examine, Job, Made, Say, Take, whole
from fscost.errors import InputError

FILE = "crash.journal"
_LARGEST_BYTES = 256 << 20
"""Answers beyond are not kept, and their states are examined again."""


@dataclass(frozen=True)
class Asked(typed.Table):
    """What was asked. `kernel`: of this machine, or the one that was named for guests."""

    workload: str
    device: str
    cuts: typed.Count
    states: typed.Count
    seed: typed.Count
    again: typed.Count
    lose_disks: bool
    lab: str
    kernel: str
    minimise: bool = False

    @property
    def limits(self) -> Limits:
        """How many states to examine."""
        return Limits(self.cuts, self.states, self.seed, self.device, self.again)


@dataclass
class Journal:
    """The answers to what was asked."""

    path: Path
    asked: Asked
    _bytes: int = 0
    _known: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, folder: Path, asked: Asked) -> Self:
        """Begin a journal, in place of an earlier one."""
        path = folder / FILE
        path.unlink(missing_ok=True)
        journal = cls(path, asked)
        journal._write(json.dumps(asdict(asked)))
        return journal

    @classmethod
    def resume(cls, folder: Path) -> Self:
        """Read the journal of an examination that did not end, to continue it. The folder is the
        user's own."""
        path = folder / FILE
        try:
            with files.open_regular(path) as file:
                content = files.content(file, _LARGEST_BYTES)
        except OSError as error:
            raise InputError(
                f"{folder} has no examination to resume: {FILE}: {error.strerror}",
                "`fscost crash RUN` examines a run from the beginning",
            ) from error
        lines = (content or b"").decode(errors="replace").split("\n")
        try:
            asked = typed.read(Asked, json.loads(lines[0]))
        except (ValueError, RecursionError, typed.InvalidError) as error:
            raise InputError(
                f"{path}: {error}", "`fscost crash RUN` examines the run from the beginning"
            ) from error
        journal = cls(path, asked, len(content or b""))
        # A line that was being written gets an end.
        if lines[-1]:
            journal._write("")
        for line in lines[1:]:
            key, digest, answer = (*line.split(" ", 2), "", "", "")[:3]
            if digest and digest == _digest(answer):
                journal._known[key] = answer
        return journal

    def known(self, key: str) -> dict[str, Any] | None:
        """Return the answer to a job, if it was given."""
        answer = self._known.get(key)
        return None if answer is None else dict(json.loads(answer))

    def keep(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer. It outlasts this program, however that ends."""
        text = json.dumps(answer)
        if self._bytes + len(text) < _LARGEST_BYTES:
            self._write(f"{key} {_digest(text)} {text}")

    def end(self) -> None:
        """Remove the journal: its examination has ended."""
        self.path.unlink(missing_ok=True)

    def _write(self, line: str) -> None:
        with files.growing(self.path, again=True) as file:
            self._bytes += file.write(f"{line}\n".encode())


def answers(examine: Examine, profile: str, journal: Journal | None) -> Answered:
    """Return what answers jobs: from the journal, else by an examination, whose answers the journal
    keeps as they come."""

    def answered(about: About, jobs: Sequence[Job], say: Say, take: Take = whole, /) -> list[Any]:
        found: dict[int, Any] = {}
        keys = [_key(profile, about, job) for job in jobs]
        for place, key in enumerate(keys):
            if journal is not None and (answer := journal.known(key)) is not None:
                found[place] = take(place, answer)
        left = [place for place in range(len(jobs)) if place not in found]

        def finished(place: int, answer: dict[str, Any]) -> None:
            if journal is not None:
                journal.keep(keys[left[place]], answer)
            found[left[place]] = take(left[place], answer)
            say(len(found), len(jobs))

        if left:
            examine(about, Made(jobs.__getitem__, left), finished)
        return [found[place] for place in range(len(jobs))]

    return answered


def _key(profile: str, about: About, job: Job) -> str:
    # The run's folder may have another name now. Another Python has other digests (snapshot.py).
    shared = {name: value for name, value in about.items() if name != "recording"}
    text = json.dumps([profile, sys.hexversion, shared, dict(job)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
