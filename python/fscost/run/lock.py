"""Lock that allows one run at a time on a machine: concurrent runs would distort each other's
results."""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fscost.errors import HostError

HOST = "fscost"
_MACHINE = Path("/run")
"""Folder that only root can write to, so no other user can keep root's runs from starting.
Containers and network namespaces that share this folder share the lock."""
_PAUSE_S = 0.5
"""Pause between looks at root's lock, which other users cannot wait for."""


@dataclass(frozen=True)
class Holder:
    """The run that holds the lock. `process` is empty if it is unknown."""

    process: str
    since: datetime

    def __str__(self) -> str:
        process = f"process {self.process}, " if self.process.isdecimal() else ""
        return f"{process}since {self.since:%Y-%m-%d %H:%M:%S}"


Waits = Callable[[Holder], None]
"""Callback of a run that waits for the lock; it is called with each run that holds it."""


@contextmanager
def exclusive(name: str = HOST, waits: Waits | None = None) -> Iterator[None]:
    """Hold the lock while the block runs. The kernel releases it when the process ends, even on
    SIGKILL (flock(2)). With `waits`, wait for a run that holds it; otherwise raise HostError.

    While root holds the lock, no other user can start a run. Root ignores the locks of other users,
    who could hold them forever.
    """
    if os.geteuid() != 0:
        _await_root(_MACHINE / f"{name}.lock", waits)
    path = _path(name)
    descriptor = _locked(path, waits)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _path(name: str) -> Path:
    if os.geteuid() == 0:
        return _MACHINE / f"{name}.lock"
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or "-")
    if own.is_absolute() and own.is_dir() and own.stat().st_uid == os.geteuid():
        return own / f"{name}.lock"
    return Path(tempfile.gettempdir()) / f"{name}-{os.geteuid()}.lock"


def _await_root(path: Path, waits: Waits | None) -> None:
    """Wait until root does not hold its lock, which no other user may open."""
    told = None
    while (holder := _holder(path)) is not None:
        if waits is None:
            raise _in_progress(holder)
        if holder != told:
            waits(told := holder)
        time.sleep(_PAUSE_S)


def _locked(path: Path, waits: Waits | None) -> int:
    while True:
        descriptor = _open(path)
        try:
            _lock(descriptor, waits)
            # A holder removes the file when it ends; a lock on the removed file excludes nobody.
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, waits: Waits | None) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        holder = Holder(process, _since(os.fstat(descriptor)))
        if waits is None:
            raise _in_progress(holder) from None
        waits(holder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _open(path: Path) -> int:
    try:
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600
        )
    except OSError as error:
        raise HostError(
            f"the lock {path} cannot be opened: {error.strerror}",
            "see what is there, and remove it",
        ) from error
    status = os.fstat(descriptor)
    is_file = stat.S_ISREG(status.st_mode)
    if not is_file or status.st_uid != os.geteuid():
        os.close(descriptor)
        fault = f"belongs to user {status.st_uid}" if is_file else "is not a regular file"
        raise HostError(
            f"the lock {path} {fault}",
            "remove it, or set XDG_RUNTIME_DIR to a folder of your own",
        )
    return descriptor


def _since(status: os.stat_result) -> datetime:
    """Time at which the lock was taken: the holder then writes its process ID to the file."""
    return datetime.fromtimestamp(status.st_mtime).astimezone()


def _holder(path: Path) -> Holder | None:
    """Run that holds another user's lock, from proc_locks(5)."""
    try:
        status = path.stat()
        held = Path("/proc/locks").read_text()
    except OSError:
        return None
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    fields = [line.split() for line in held.splitlines()]
    return next(
        (
            Holder(each[4], _since(status))
            for each in fields
            if len(each) > 5 and each[1] == "FLOCK" and each[5] == wanted
        ),
        None,
    )


def _in_progress(holder: Holder) -> HostError:
    return HostError(
        f"another fscost run is in progress ({holder}); concurrent runs would distort each other's"
        " results",
        "wait until it ends (--wait does), or end it",
    )
