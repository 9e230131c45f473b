"""What guests are made of is kept below the user's cache: kernels, snapshots. Each is there complete, or not at all."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fscost.errors import HostError

_UNFINISHED = ".making-"
_ANOTHER = "XDG_CACHE_HOME=…"
_FULL_BYTES = 1 << 20
"""With less than this free, a disk is full: who needs a large piece fails before the last byte is taken."""


def root() -> Path:
    """`$XDG_CACHE_HOME/fscost`, or below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "fscost"
    except RuntimeError:
        raise HostError("there is no home for what guests are made of", f"name a folder for it: {_ANOTHER}") from None


def complete(folder: Path, make: Callable[[Path], None]) -> Path:
    """`folder`, made by `make` in an empty folder if it is not there. Others who want one beside it wait."""
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.parent):
            # Others may have made it meanwhile; and whoever was killed while making one holds the lock no more.
            for left in folder.parent.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
            if folder.is_dir():
                return folder
            with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=folder.parent) as work:
                made = Path(work) / "made"
                made.mkdir()
                _make(make, made)
                made.rename(folder)
    except OSError as error:
        room = "free some space there, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise HostError(f"{folder}: {error.strerror}", f"{room}name another folder: {_ANOTHER}") from None
    return folder


def _make(make: Callable[[Path], None], made: Path) -> None:
    """Programs for which there is no room say so in their own way, and a guest whose memory is a file dies without a word (SIGBUS)."""
    try:
        make(made)
    except HostError as error:
        if shutil.disk_usage(made).free < _FULL_BYTES:
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} ({error.what})") from None
        raise


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
