"""Creation and replacement of files: whole or not at all, durable before they get their name, and
replacing only regular files."""

import errno
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from fscost.errors import DiskFullError, FscostError, HostError, InputError
from fscost.files.descriptor import descriptor
from fscost.files.place import Place, found, give, kind
from fscost.files.read import open_regular, proc_field

PRIVATE = 0o600
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
"""Errors of open(2) for O_TMPFILE if the file system, or a layer above it, does not support it."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOENT)
ANOTHER = "name another file"
WHY = "find out why fscost cannot write there"


@contextmanager
def replacing(path: Path, remedy: str = ANOTHER, *, follow: bool = True) -> Iterator[IO[bytes]]:
    """Yield a file to fill. Afterwards `path` has the new content, or keeps the old one if the
    block raises.

    A new file gets the caller's umask. A replaced file keeps its mode and owner; its other hard
    links keep the old content. A file without write permission for its owner is refused, also for
    root. A symbolic link is followed to its target, whether or not the target exists.

    Without `follow`, for a name that fscost itself chose in a folder that may come from elsewhere:
    only a regular file is replaced, and a link is refused whoever owns it. An unpacked archive
    belongs to the caller with all its links.
    """
    with reported(path, remedy), found(path, follow=follow) as place:
        if follow and _is_stream(place):
            with _stream(place) as file:
                yield file
            return
        _refuse(place)
        with _part(place) as part:
            yield part.file
            part.keep_owner(place.status)
            part.sync()
            part.take_place()
        sync_folder(".", place.folder)


@contextmanager
def creating(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to fill, which gets the name `path` only once it is complete; the name must be
    free. Its mode is 0600, because recordings hold the content of files.

    Native code opens the file by its descriptor (`file.fileno()`), so nobody can put another file
    in its place.
    """
    with reported(path, ANOTHER), found(path) as place:
        _refuse_existing(place)
        with _part(place) as part:
            yield part.file
            give(part.file.fileno(), place.folder)
            part.sync()
            part.take_new_name()
        sync_folder(".", place.folder)


def require_space(file: IO[bytes], path: Path, size_bytes: int) -> None:
    """Raise DiskFullError if the file system of `file` has less than `size_bytes` free, before the
    first byte is written."""
    room = os.fstatvfs(file.fileno())
    free = room.f_bavail * room.f_frsize
    if size_bytes > free:
        raise DiskFullError(
            f"{path} needs {size_bytes:,} bytes, but only {free:,} are free there",
            f"free some space there, or {ANOTHER}",
        )


def growing(path: Path, *, again: bool = False) -> BinaryIO:
    """Open a new file of mode 0600 that is visible while it grows. With `again`, an earlier attempt
    may have begun it. Links are not followed, and nothing but a regular file is continued."""
    with reported(path, ANOTHER), found(path, follow=False) as place:
        flags = (_NEW & ~os.O_EXCL if again else _NEW) | os.O_APPEND
        (_refuse if again else _refuse_existing)(place)
        return os.fdopen(os.open(place.name, flags, PRIVATE, dir_fd=place.folder), "wb")


def seal(path: Path) -> str:
    """Make a file that others have written durable, with its name; return its SHA-256."""
    # The disk may be full only now.
    with reported(path):
        with open_regular(path) as file:
            os.fsync(file.fileno())
            found = hashlib.file_digest(file, "sha256").hexdigest()
        sync_folder(path.parent)
        return found


def check_output(path: Path, *, follow: bool = True) -> None:
    """Raise the errors of `replacing` in advance, before long work."""
    with reported(path, ANOTHER), found(path, follow=follow) as place:
        if follow and _is_stream(place):
            return
        _refuse(place)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=place.folder):
            raise InputError(f"{path}: its folder cannot be written to", ANOTHER)


@contextmanager
def reported(path: Path, remedy: str = WHY) -> Iterator[None]:
    """Report an OSError while a file is written, as one error that names it."""
    try:
        yield
    except FscostError:
        raise
    except OSError as error:
        if error.errno == errno.ENOENT and not path.parent.exists():
            raise InputError(
                f"{path} cannot be written: there is no folder {path.parent}", remedy
            ) from error
        what = f"{path} cannot be written: {error.strerror or error}"
        if error.errno in _FULL:
            raise DiskFullError(what, f"free some space there, or {remedy}") from error
        raise HostError(what, remedy) from error


def _is_stream(place: Place) -> bool:
    """Check for a target that is written directly: a procfs link to an open file, a character
    device or a FIFO."""
    mode = 0 if place.status is None else place.status.st_mode
    return stat.S_ISLNK(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _refuse(place: Place) -> None:
    mode = stat.S_IFREG | stat.S_IWUSR if place.status is None else place.status.st_mode
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{place.path} is {kind(mode)}; fscost replaces only regular files", ANOTHER
        )
    if not mode & stat.S_IWUSR:
        raise InputError(
            f"{place.path} is write-protected (mode {stat.S_IMODE(mode):04o})",
            f"chmod u+w it, or {ANOTHER}",
        )


def _refuse_existing(place: Place) -> None:
    if place.status is not None or os.path.lexists(place.path):
        raise InputError(f"{place.path} exists", "name a file that does not exist yet")


@contextmanager
def _stream(place: Place) -> Iterator[IO[bytes]]:
    own = place.descriptor
    if own is not None:
        # If the descriptor is a regular file, reopening it would overwrite it from the start. A
        # socket cannot be reopened.
        sys.stdout.flush()
        number = os.dup(own)
    else:
        # A FIFO without a reader is an error (ENXIO, fifo(7)) rather than an endless wait.
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        number = os.open(place.name, flags, dir_fd=place.folder)
        os.set_blocking(number, True)
    with os.fdopen(number, "wb") as file:
        yield file


class _Part:
    """A file being written, in its final folder. It has no name if the file system supports that,
    so SIGKILL leaves nothing behind."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._name = ""
        flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
        try:
            number = os.open(".", flags, PRIVATE, dir_fd=place.folder)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
            number = os.open(self._random_name(), _NEW, PRIVATE, dir_fd=place.folder)
        self.file: IO[bytes] = os.fdopen(number, "w+b")

    def _random_name(self) -> str:
        # The name does not include the target's, which may already have the maximum length.
        self._name = f".fscost-{secrets.token_hex(8)}.part"
        return self._name

    def sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def keep_owner(self, old: os.stat_result | None) -> None:
        number = self.file.fileno()
        if old is None:
            os.fchmod(number, 0o666 & ~_umask())
            give(number, self._place.folder)
            return
        new = os.fstat(number)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(number, old.st_uid, old.st_gid)
            except PermissionError:
                raise InputError(
                    f"{self._place.path} belongs to user {old.st_uid}, group {old.st_gid}; a new"
                    " file cannot be given that owner",
                    ANOTHER,
                ) from None
        # Drop set-user-ID and similar bits, because the content is different.
        os.fchmod(number, stat.S_IMODE(old.st_mode) & 0o777)

    def take_place(self) -> None:
        """Take the name, replacing any file that has it."""
        if not self._name:
            self._link(self._random_name())
        folder = self._place.folder
        os.rename(self._name, self._place.name, src_dir_fd=folder, dst_dir_fd=folder)
        self._name = ""

    def take_new_name(self) -> None:
        """Take the name unless a file has it."""
        place = self._place
        try:
            if not self._name:
                self._link(place.name)
                return
            ends = {"src_dir_fd": place.folder, "dst_dir_fd": place.folder}
            try:
                os.link(self._name, place.name, **ends, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                # vfat and exfat have no hard links.
                _refuse_existing(place)
                self.take_place()
        except FileExistsError:
            raise InputError(
                f"{place.path} exists", "name a file that does not exist yet"
            ) from None

    def _link(self, name: str) -> None:
        os.link(
            f"/proc/self/fd/{self.file.fileno()}",
            name,
            dst_dir_fd=self._place.folder,
            follow_symlinks=True,
        )

    def remove(self) -> None:
        with suppress(OSError):  # errors were reported before
            self.file.close()
        if self._name:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._place.folder)


@contextmanager
def _part(place: Place) -> Iterator[_Part]:
    part = _Part(place)
    try:
        yield part
    finally:
        part.remove()


def sync_folder(path: Path | str, folder: int | None = None) -> None:
    """Make the names in a folder durable."""
    # A folder may be writable but not readable.
    flags = os.O_RDONLY | os.O_DIRECTORY
    with suppress(PermissionError), descriptor(path, flags, folder) as readable:
        os.fsync(readable)


def _umask() -> int:
    """Read the umask from procfs. umask(2) would change it for the whole process while other
    threads create files."""
    return int(proc_field(Path("/proc/self/status"), "Umask") or "077", 8)
