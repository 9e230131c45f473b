"""Files made and replaced: whole or not at all, on the disk before they have their name, and
nothing but regular files replaced."""

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
from fscost.files.place import Place, found, give, kind
from fscost.files.read import open_regular

PRIVATE = 0o600
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
"""What open(2) answers to O_TMPFILE where the file system, or what stands before it, has none."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOENT)
ANOTHER = "name another file"


@contextmanager
def replacing(path: Path, remedy: str = ANOTHER) -> Iterator[IO[bytes]]:
    """A file to fill; afterwards `path` has this content, or the old one if the block raises.

    A new file gets the caller's umask. One that is replaced keeps mode and owner, and its other
    names (hard links) keep the old content; one without write
    permission for its owner is refused, also to root. A link is followed to what it names, missing
    or not.
    """
    with _errors(path, remedy), found(path) as place:
        if _is_stream(place):
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
def creating(path: Path, remedy: str = ANOTHER) -> Iterator[IO[bytes]]:
    """A file to fill, which `path` names only once it is whole; nothing may have that name. 0600:
    recordings hold what files held.

    Native code opens it by its descriptor (`file.fileno()`), so that nobody can put another in its
    place.
    """
    with _errors(path, remedy), found(path) as place:
        _refuse_existing(place)
        with _part(place) as part:
            yield part.file
            give(part.file.fileno(), place.folder)
            part.sync()
            part.take_new_name()
        sync_folder(".", place.folder)


def require_space(file: IO[bytes], path: Path, size_bytes: int) -> None:
    """Raise DiskFullError where the file system of `file` has no room for so much, before the first
    byte of it."""
    room = os.fstatvfs(file.fileno())
    free = room.f_bavail * room.f_frsize
    if size_bytes > free:
        raise DiskFullError(
            f"{path} would take {size_bytes:,} bytes, and {free:,} are free there",
            f"free some space there, or {ANOTHER}",
        )


def growing(path: Path, *, again: bool = False) -> BinaryIO:
    """A new file, 0600, that is seen while it grows. With `again`, an earlier attempt may have
    begun it, and no link is followed."""
    with _errors(path, ANOTHER), found(path) as place:
        if again:
            flags = _NEW & ~os.O_EXCL
        else:
            _refuse_existing(place)
            flags = _NEW
        return os.fdopen(
            os.open(place.name, flags | os.O_APPEND, PRIVATE, dir_fd=place.folder), "wb"
        )


def seal(path: Path) -> str:
    """A file that has been written by others is on the disk, with its name; returns its SHA-256."""
    with open_regular(path) as file:
        os.fsync(file.fileno())
        found = hashlib.file_digest(file, "sha256").hexdigest()
    sync_folder(path.parent)
    return found


def check_output(path: Path) -> None:
    """Raise, before long work, what `replacing` would raise after it."""
    with _errors(path, ANOTHER), found(path) as place:
        if _is_stream(place):
            return
        _refuse(place)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=place.folder):
            raise InputError(f"{path}: its folder cannot be written to", ANOTHER)


@contextmanager
def _errors(path: Path, remedy: str) -> Iterator[None]:
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
    """What is written as it comes: a link of procfs to something open, a character device, a
    FIFO."""
    mode = 0 if place.status is None else place.status.st_mode
    return stat.S_ISLNK(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _refuse(place: Place) -> None:
    mode = stat.S_IFREG | stat.S_IWUSR if place.status is None else place.status.st_mode
    if not stat.S_ISREG(mode):
        raise InputError(f"{place.path} is {kind(mode)}, and is not written", ANOTHER)
    if not mode & stat.S_IWUSR:
        raise InputError(
            f"{place.path} is write-protected (mode {stat.S_IMODE(mode):04o})",
            f"chmod u+w it, or {ANOTHER}",
        )


def _refuse_existing(place: Place) -> None:
    if place.status is not None or os.path.lexists(place.path):
        raise InputError(f"{place.path} exists", "name a file that does not")


@contextmanager
def _stream(place: Place) -> Iterator[IO[bytes]]:
    own = place.descriptor
    if own is not None:
        # Opened again, a regular file behind it would be written from its beginning, and a socket
        # not at all.
        sys.stdout.flush()
        descriptor = os.dup(own)
    else:
        # A FIFO that nobody reads is an error (ENXIO, fifo(7)), not a wait for ever.
        descriptor = os.open(
            place.name,
            os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC,
            dir_fd=place.folder,
        )
        os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        yield file


class _Part:
    """A file in the making, in the folder where its name will be: without a name where the file
    system can do that, so that SIGKILL leaves nothing."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._name = ""
        try:
            descriptor = os.open(
                ".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, PRIVATE, dir_fd=place.folder
            )
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
            descriptor = os.open(self._random_name(), _NEW, PRIVATE, dir_fd=place.folder)
        self.file: IO[bytes] = os.fdopen(descriptor, "w+b")

    def _random_name(self) -> str:
        # Not of the target's name: that may be as long as a name can be.
        self._name = f".fscost-{secrets.token_hex(8)}.part"
        return self._name

    def sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def keep_owner(self, old: os.stat_result | None) -> None:
        descriptor = self.file.fileno()
        if old is None:
            os.fchmod(descriptor, 0o666 & ~_umask())
            give(descriptor, self._place.folder)
            return
        new = os.fstat(descriptor)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            try:
                os.fchown(descriptor, old.st_uid, old.st_gid)
            except PermissionError:
                raise InputError(
                    f"{self._place.path} belongs to user {old.st_uid}, group {old.st_gid}, which a new file could not",
                    ANOTHER,
                ) from None
        # Without set-user-ID and the like: the content is another.
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)

    def take_place(self) -> None:
        """Get the name, whatever had it."""
        if not self._name:
            self._link(self._random_name())
        os.rename(
            self._name,
            self._place.name,
            src_dir_fd=self._place.folder,
            dst_dir_fd=self._place.folder,
        )  # relative to a folder
        self._name = ""

    def take_new_name(self) -> None:
        """Get the name unless something has it."""
        place = self._place
        try:
            if not self._name:
                self._link(place.name)
                return
            try:
                os.link(
                    self._name,
                    place.name,
                    src_dir_fd=place.folder,
                    dst_dir_fd=place.folder,
                    follow_symlinks=False,
                )
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                # vfat and exfat have no hard links.
                _refuse_existing(place)
                self.take_place()
        except FileExistsError:
            raise InputError(f"{place.path} exists", "name a file that does not") from None

    def _link(self, name: str) -> None:
        os.link(
            f"/proc/self/fd/{self.file.fileno()}",
            name,
            dst_dir_fd=self._place.folder,
            follow_symlinks=True,
        )

    def remove(self) -> None:
        with suppress(OSError):  # what was to be said has been said
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
    """The names in it are on the disk, too."""
    try:
        readable = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        return  # a folder that may be written and not listed
    try:
        os.fsync(readable)
    finally:
        os.close(readable)


def _umask() -> int:
    """Read, not set: umask(2) is the whole process's, and other threads make files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1], 8) for line in lines if line.startswith("Umask:")), 0o077)
