"""Cache below the user's cache folder: guest kernels, snapshots, the script of pages.

Each entry is a folder. It is complete once its last file, `COMPLETE`, lists the digest of every
other file. Entries are created in a folder beside their final place, flushed, and renamed; before
they are deleted, they are renamed away. If any process is killed, at any time, an entry is
either complete or ignored. The guest's memory and its kernel come from this cache, and a script
that browsers run, so it is used only if nobody else can write to it.
"""

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from fscost import files
from fscost.errors import HostError

T = TypeVar("T")
COMPLETE = "COMPLETE"
"""File that is written last: a JSON object with the SHA-256 of each other file by its path."""
LOCK = ".lock"
_UNFINISHED = ".making-"
_UNWANTED = ".gone-"
_ANOTHER = "XDG_CACHE_HOME=…"
_FULL_BYTES = 1 << 20
"""Free space below which a disk counts as full. A program that needs a large block of space fails
before the last byte is used."""


def root() -> Path:
    """`$XDG_CACHE_HOME/fscost`, or `~/.cache/fscost`. A relative path is ignored, as the XDG Base
    Directory Specification asks."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        raise HostError(
            "this user has no home directory for a cache",
            f"name a folder: {_ANOTHER}",
        ) from None
    return base / "fscost"


def is_complete(folder: Path) -> bool:
    """True if the entry is complete. HostError if another user could have written it."""
    if not folder.is_dir():
        return False
    refuse_writable_by_others(folder)
    return (folder / COMPLETE).is_file()


class DamagedError(HostError):
    """A file of a complete entry is missing, or differs from its digest."""


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of a complete entry, by path."""
    try:
        found = json.loads((folder / COMPLETE).read_text())
    except (OSError, ValueError) as error:
        raise DamagedError(f"{folder / COMPLETE}: {error}") from None
    if not isinstance(found, dict):
        raise DamagedError(f"{folder / COMPLETE} is not a list of digests")
    return found


class CheckedFile:
    """A file of an entry, open and verified against its digest. It stays readable if the entry is
    deleted. DamagedError if it differs."""

    def __init__(self, path: Path, digest: str | None) -> None:
        self.path, self._digest = path, digest
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise DamagedError(f"{path}: {error.strerror}") from None
        weakref.finalize(self, os.close, self._descriptor)
        self._checked: tuple[int, int] | None = None
        self._check()

    def is_in_place(self) -> bool:
        """True unless the entry was deleted or made again after this file was opened."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def read(self) -> bytes:
        """Read the whole file."""
        with self.reopened() as descriptor, open(descriptor, "rb", closefd=False) as file:
            return file.read()

    @contextmanager
    def reopened(self) -> Iterator[int]:
        """Yield a descriptor with its own file position."""
        self._check()
        with files.descriptor(f"/proc/self/fd/{self._descriptor}", os.O_RDONLY) as reopened:
            yield reopened

    def _check(self) -> None:
        """Verify the digest if the file may have changed since the last check."""
        status = os.fstat(self._descriptor)
        seen = (status.st_size, status.st_mtime_ns)
        if seen == self._checked:
            return
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self._digest:
            raise DamagedError(f"{self.path.name} differs from its digest")
        self._checked = seen


def check(folder: Path) -> None:
    """Raise DamagedError if any file of a complete entry differs from its digest."""
    for name, digest in digests(folder).items():
        CheckedFile(folder / name, digest)


def complete(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return `folder`. If it is not complete, `make` fills an empty folder that takes its place.
    Concurrent callers wait."""
    return opened(folder, make, lambda path: path, lambda _: None)


def opened(
    folder: Path,
    make: Callable[[Path], None],
    use: Callable[[Path], T],
    say: Callable[[DamagedError], None],
) -> T:
    """Return `use(folder)`, like `complete`. An entry in which `use` finds damage is made again,
    and `say` gets the damage.

    Between finding an entry complete and opening its files, another process may discard it. So
    damage is judged again under the lock, where an entry cannot disappear.
    """
    try:
        with suppress(DamagedError):
            if is_complete(folder):
                return use(folder)
        # Before anything is made there: root would leave folders in another user's home.
        _refuse_replaceable(folder.parent)
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_writable_by_others(folder.parent)
        with _alone(folder.parent):
            try:
                if is_complete(folder):
                    return use(folder)
            except DamagedError as error:
                say(error)
            _replace(folder, make)
            return use(folder)
    except OSError as error:
        room = "free some space there, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise HostError(
            f"{folder}: {error.strerror}", f"{room}name another folder: {_ANOTHER}"
        ) from None


def _replace(folder: Path, make: Callable[[Path], None]) -> None:
    """Make the entry anew. The caller holds the lock."""
    # A killed process no longer holds the lock, so its leftovers can be removed.
    for pattern in (_UNFINISHED, _UNWANTED):
        for left in folder.parent.glob(f"{pattern}*"):
            shutil.rmtree(left, ignore_errors=True)
    _set_aside(folder)
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=folder.parent) as work:
        made = Path(work) / "made"
        made.mkdir(mode=0o700)
        _make(make, made)
        _seal(made)
        made.rename(folder)
    _flush(folder.parent)


def discard(file: CheckedFile) -> None:
    """Delete the entry that holds `file`, unless it has been made again since `file` was opened.
    Open files stay readable, and no process sees a partly deleted folder."""
    folder = file.path.parent
    try:
        with _alone(folder.parent):
            if file.is_in_place():
                _set_aside(folder)
    except OSError:
        # A read-only cache keeps its entries.
        return


def discard_all_but(folder: Path, count: int) -> None:
    """Keep the `count` most recently used entries of `folder`. The caller is creating an entry
    there, and so holds the lock."""
    entries = sorted(
        (path for path in folder.iterdir() if not path.name.startswith(".")),
        key=lambda path: path.stat().st_mtime,
    )
    for old in entries[: max(0, len(entries) - count)]:
        _set_aside(old)


def _set_aside(folder: Path) -> None:
    unwanted = folder.with_name(f"{_UNWANTED}{os.urandom(8).hex()}")
    try:
        folder.rename(unwanted)
    except FileNotFoundError:
        return
    shutil.rmtree(unwanted, ignore_errors=True)


def _make(make: Callable[[Path], None], made: Path) -> None:
    """Run `make`, and report a full disk as ENOSPC: a program that runs out of space reports it in
    its own words, or not at all."""
    try:
        make(made)
    except HostError as error:
        if shutil.disk_usage(made).free < _FULL_BYTES:
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} ({error.what})") from None
        raise


def _seal(made: Path) -> None:
    found = sorted(path for path in made.rglob("*") if path.is_file() and not path.is_symlink())
    digests = {str(path.relative_to(made)): _digest(path) for path in found}
    _flush(made)
    (made / COMPLETE).write_text(json.dumps(digests))
    _flush(made)


def _flush(folder: Path) -> None:
    """Make the files below `folder` durable. A kernel has 4,000 modules: one syncfs(2) takes less
    time than 4,000 fsyncs."""
    libc = ctypes.CDLL(None, use_errno=True)
    with files.descriptor(folder, os.O_RDONLY | os.O_DIRECTORY) as opened:
        if libc.syncfs(opened) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_writable_by_others(folder: Path) -> None:
    """Refuse a folder that is not the caller's, or that other users can replace."""
    _refuse_replaceable(folder)
    ours, resolved = os.geteuid(), folder.resolve()
    if resolved.stat().st_uid != ours:
        raise HostError(f"{resolved} belongs to root; fscost runs as user {ours}", _remedy())


def _refuse_replaceable(folder: Path) -> None:
    """Refuse a folder that other users can replace: they could replace any of the folders above
    it. It need not exist."""
    ours = os.geteuid()
    if (found := files.replaceable(folder, (ours, 0))) is not None:
        part, why = found
        raise HostError(
            f"{part} {why}; fscost runs as user {ours} and does not trust files in it",
            f"`chmod go-w {part}`, or {_remedy()}"
            if part.stat().st_uid in (ours, 0)
            else _remedy(),
        )


def _remedy() -> str:
    return f"name a folder of your own: {_ANOTHER}"


@contextmanager
def private(folder: Path) -> Iterator[Path]:
    """Make a folder that only this user can read and write, and yield it while no other process
    does. HostError if another user could write there."""
    _refuse_replaceable(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_writable_by_others(folder)
    with _alone(folder):
        yield folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    # No link is followed and nothing is truncated, because the name can be guessed.
    with files.descriptor(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
