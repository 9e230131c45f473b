"""The workloads of `fscost crash`: programs that make promises, and the check of what is left of
them."""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import fscost
from fscost.crash import postgresql, promises, sequences, sqlite, unsynced
from fscost.errors import InputError

UNSYNCED = "unsynced"
"""Name of the workload that promises nothing."""
COMMAND = "command"
"""Name of the workload that is any command: what it promised is known from its fsync calls."""
Broken = Callable[[Path, Mapping[str, int]], Iterable[tuple[str, str]]]
"""Returns the kind and place of each broken promise in a folder, given the newest number of each
kind of promise that was made."""


_START = "import sys; sys.path.insert(0, {0!r}); from {1} import main; main()"


@dataclass(frozen=True)
class Workload:
    """A module whose `main` is a program, its arguments, and the check of what it left. Without a
    check, its fsync calls are its promises."""

    summary: str
    program: str
    arguments: Sequence[str]
    broken: Broken | None = None

    def prepare(self, rounds: int, python: str = sys.executable) -> str:
        """Command that makes what the promises are about."""
        return self._command(python, "prepare", rounds)

    def run(self, rounds: int, python: str = sys.executable) -> str:
        """Command that makes the promises."""
        return self._command(python, "run", rounds)

    def _command(self, python: str, part: str, rounds: int) -> str:
        start = _START.format(str(Path(fscost.__file__).resolve().parents[1]), self.program)
        return shlex.join([python, "-IS", "-c", start, part, *self.arguments, str(rounds)])


def _sqlite(summary: str, journal: str, synchronous: str) -> Workload:
    return Workload(summary, sqlite.__name__, (journal, synchronous), sqlite.broken)


def _sequences(length: int, words: str) -> Workload:
    return Workload(f"{words}, then fsync or fdatasync", sequences.__name__, (str(length),))


def _files(words: str, operations: Sequence[str] = ()) -> Workload:
    return Workload(words, promises.__name__, operations, promises.broken)


FILES = "files"
WORKLOADS = {
    FILES: _files("files that are appended to, replaced, created and overwritten, with fsync"),
    "sqlite": _sqlite("SQLite as it comes: rollback journal, synchronous=FULL", "DELETE", "FULL"),
    "sqlite-extra": _sqlite(
        "SQLite that also syncs the folder of the journal: synchronous=EXTRA", "DELETE", "EXTRA"
    ),
    "sqlite-wal": _sqlite("SQLite with a write-ahead log, synchronous=FULL", "WAL", "FULL"),
    "postgresql": Workload(
        "PostgreSQL's transactions, and its own crash recovery",
        postgresql.__name__,
        (),
        postgresql.broken,
    ),
    UNSYNCED: Workload(
        "a record and a file every quarter of a second, without fsync: what may be lost",
        unsynced.__name__,
        (),
        unsynced.broken,
    ),
    "sequences": _sequences(1, "single calls that change a file or folder"),
    "sequences-2": _sequences(2, "two such calls"),
    "sequences-3": _sequences(3, "three such calls"),
}


_SOME_FILES = f"{FILES}: "


def some_files(operations: Iterable[str]) -> str:
    """Return the name of the workload that does only some operations of `files`."""
    return f"{_SOME_FILES}{', '.join(operations)}"


def operations(name: str) -> tuple[str, ...] | None:
    """Return what a round of the workload `files`, or of a part of it, does; None for any other
    workload."""
    if name == FILES:
        return tuple(promises.OPERATIONS)
    is_part = name.startswith(_SOME_FILES)
    return tuple(name.removeprefix(_SOME_FILES).split(", ")) if is_part else None


def is_sequences(name: str) -> bool:
    """True for sequences of calls, and for one of them."""
    return name != COMMAND and named(name).program == sequences.__name__


def sequences_of(name: str, count: int) -> list[sequences.Sequence]:
    """Return the sequences of such a workload, of which there are `count`."""
    [which] = named(name).arguments
    found = sequences.sequences(int(which), count) if which.isdigit() else None
    return found or [sequences.parsed(which)]


def named(name: str) -> Workload:
    """Return a workload by its name; also a part of `files`, and any one sequence."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    if chosen := operations(name):
        if unknown := [each for each in chosen if each not in promises.OPERATIONS]:
            known = ", ".join(promises.OPERATIONS)
            raise InputError(f"{unknown[0]!r} is no operation of {FILES}", f"one of: {known}")
        return _files("some of these operations", chosen)
    if ", " not in name:
        raise InputError(
            f"workload {name!r} is unknown",
            f"one of: {', '.join(WORKLOADS)}; or a sequence: 'link A.foo A.bar, fsync A.foo'",
        )
    return Workload("one sequence", sequences.__name__, (str(sequences.parsed(name)),))


def checked(name: str) -> Broken | None:
    """Return the check of a workload, or None if its fsync calls are its promises."""
    return None if name == COMMAND else named(name).broken
