"""Lock that allows one run at a time on a machine: concurrent runs would distort each other's
results."""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fscost.errors import HostError

HOST = "fscost"
_MACHINE = Path("/run")
"""Folder that only root can write to, so no other user can keep root's runs from starting.
Containers and network namespaces that share this folder share the lock."""


@contextmanager
def exclusive(name: str = HOST) -> Iterator[None]:
    """Hold the lock while the block runs. The kernel releases it when the process ends, even on
    SIGKILL (flock(2)).

    While root holds the lock, no other user can start a run. Root ignores the locks of other users,
    who could hold them forever.
    """
    if os.geteuid() != 0 and (holder := _holder(_MACHINE / f"{name}.lock")) is not None:
        raise _in_progress(holder)
    path = _path(name)
    descriptor = _locked(path)
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


def _locked(path: Path) -> int:
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A holder removes the file when it ends; a lock on the removed file excludes nobody.
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise _in_progress(holder) from None
        except FileNotFoundError:
            pass
        os.close(descriptor)


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


def _holder(path: Path) -> str | None:
    """ID of the process that holds another user's lock, from proc_locks(5)."""
    try:
        status = path.stat()
        held = Path("/proc/locks").read_text()
    except OSError:
        return None
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    fields = [line.split() for line in held.splitlines()]
    return next(
        (each[4] for each in fields if len(each) > 5 and each[1] == "FLOCK" and each[5] == wanted),
        None,
    )


def _in_progress(holder: str) -> HostError:
    process = f" (process {holder})" if holder.isdecimal() else ""
    return HostError(
        f"another fscost run is in progress{process}; concurrent runs would distort each other's"
        " results",
        "wait until it ends, or end it",
    )
