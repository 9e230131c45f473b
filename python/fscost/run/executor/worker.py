"""Execution of cells on a machine of a cluster, for a run on another machine."""

import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fscost import files
from fscost.errors import FscostError, HostError
from fscost.files import stores
from fscost.lab.base import CellResult
from fscost.results import STORED, Stored
from fscost.run.executor.survey import Question
from fscost.run.lock import exclusive
from fscost.run.measure import Task, measure
from fscost.workload import inputs

PIECE_BYTES = 8 << 20
"""Size of the pieces in which large files are sent."""
_SMALL_BYTES = 256 << 10
_PREFIX = "fscost-worker-"
_HELD = "held"


@dataclass(frozen=True)
class Outcome:
    """End of a cell. Paths in `result` are relative to the cell's folder.

    `files`: the content of its small files, and the size of those that the run has yet to read.
    `no_cell_runs`: why this machine can run no further cell.
    """

    result: CellResult | None
    duration_s: float
    files: dict[str, bytes | int]
    no_cell_runs: str = ""
    error: FscostError | None = None


class Worker:
    """One machine's part of a run. It keeps other runs on its machine from starting."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._inputs = threading.Lock()

    def open(self, question: Question) -> str | None:
        """Make the lab. Return None, or the reason why no cell can run here now."""
        try:
            self._held.enter_context(exclusive(question.lock))
            self._lab = question.lab.make(print)
            self._lab.check()
        except FscostError as error:
            self.close()
            return error.what
        sweep()
        self._folder = self._held.enter_context(_own_folder())
        return None

    def run(self, task: Task) -> Outcome:
        """Run a cell in a folder of this machine."""
        folder = self._folder / "cells" / task.cell.id
        shutil.rmtree(folder, ignore_errors=True)
        try:
            files.make_folder(folder)
            workload = task.cell.workload
            with self._inputs:
                prepared = inputs.prepare(workload, self._folder / "inputs")
            cell = replace(task.cell, workload=replace(workload, input=prepared))
            options = replace(task.options, cell_dir=folder)
            begin = time.monotonic()
            result = measure(self._lab, replace(task, cell=cell, options=options), lambda _: None)
            _store(result, task)
            duration_s = time.monotonic() - begin
            sent = _files(folder)
        except HostError as error:
            return Outcome(None, 0.0, {}, no_cell_runs=error.what)
        except OSError as error:
            return Outcome(None, 0.0, {}, no_cell_runs=str(error))
        except FscostError as error:
            return Outcome(None, 0.0, {}, error=error)
        if all(isinstance(content, bytes) for content in sent.values()):
            self.forget(task.cell.id)
        return Outcome(_relative(result, task, folder), duration_s, sent)

    def read(self, cell: str, name: str, offset: int) -> bytes:
        """Return a piece of a file of a finished cell."""
        with (self._folder / "cells" / cell / name).open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)

    def forget(self, cell: str) -> None:
        """Remove the folder of a finished cell."""
        shutil.rmtree(self._folder / "cells" / cell, ignore_errors=True)

    def close(self) -> None:
        """Remove everything, and let other runs start."""
        self._held.close()


def sweep(within_s: float = 0) -> None:
    """Remove the folders of workers that were killed, waiting so long for those that still end."""
    until = time.monotonic() + within_s
    while not all(map(_removed, Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))):
        if time.monotonic() >= until:
            return
        time.sleep(0.1)


def _removed(folder: Path) -> bool:
    """Remove a folder, unless it is in use."""
    try:
        if not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
            with (folder / _HELD).open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    except OSError:
        return True  # it is gone
    return True


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Make a folder that is in use until the block ends, or this process does."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (folder / _HELD).open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _store(result: CellResult, task: Task) -> None:
    """Move a recording to the run's store, if it has one."""
    if not task.store or result.recording is None:
        return
    name = f"{task.cell.id}.fscost"
    size_bytes, sha256 = result.recording.stat().st_size, files.seal(result.recording)
    stores.put(result.recording, task.store, name)
    result.recording.unlink()
    result.recording = None
    result.facts[STORED] = Stored(task.store, name, size_bytes, sha256).fact()


def _files(folder: Path) -> dict[str, bytes | int]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes() if size <= _SMALL_BYTES else size
        for path in found
        for size in (path.stat().st_size,)
    }


def _relative(result: CellResult, task: Task, folder: Path) -> CellResult:
    """Return the result without anything of this machine."""
    recording, output = result.recording, result.output
    return replace(
        result,
        cell=task.cell,
        recorded=(),
        recording=None if recording is None else recording.relative_to(folder),
        output=None if output is None else output.relative_to(folder),
    )
