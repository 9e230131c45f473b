"""Resolution of a path to an open folder and the last name in it. No symbolic link that another
user made is followed on the way."""

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from fscost.errors import InputError

_KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
"""Maximum number of symbolic links in a path, equal to the kernel's limit (path_resolution(7))."""
_NO_ID = (1 << 32) - 1
_PROC_ROOT_INODE = 1
"""Inode number of the root of procfs (include/linux/proc_fs.h, PROC_ROOT_INO)."""


Ids = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A name in an open folder, and the status of the file it names. `status` is None if there is
    no such file. It describes a link only if procfs resolves that link itself, or if the last link
    of the path was not to be followed."""

    path: Path
    folder: int
    name: str
    status: os.stat_result | None

    @property
    def descriptor(self) -> int | None:
        """Number of the file descriptor of this process that the name stands for (`/dev/stdout`,
        `/dev/fd/63`), or None."""
        if (
            self.status is None
            or not stat.S_ISLNK(self.status.st_mode)
            or not self.name.isdecimal()
        ):
            return None
        ours, here = Path("/proc/self/fd").stat(), os.fstat(self.folder)
        return int(self.name) if (ours.st_dev, ours.st_ino) == (here.st_dev, here.st_ino) else None


def kind(mode: int) -> str:
    """Name of the file type in a mode of stat(2)."""
    return _KINDS.get(stat.S_IFMT(mode), "no file")


def trusted_owners() -> frozenset[int]:
    """User IDs whose files and links the caller may rely on: its own and root's. Root also trusts
    the user who called sudo, as git does (safe.directory)."""
    caller = os.geteuid()
    sudo = _number("SUDO_UID")
    return frozenset({0, caller} | (set() if caller or sudo is None else {sudo}))


def sudo_caller() -> Ids | None:
    """User and group that called sudo; None without sudo, or if root called it."""
    user, group = _number("SUDO_UID"), _number("SUDO_GID")
    if os.geteuid() or group is None or not user:
        return None
    return user, group


def _number(variable: str) -> int | None:
    """User or group ID in an environment variable; None for anything else. The highest number of 32
    bits stands for no user (chown(2))."""
    text = os.environ.get(variable, "")
    is_id = text.isdecimal() and len(text) <= 10 and int(text) < _NO_ID
    return int(text) if is_id else None


def give(descriptor: int, folder: int) -> None:
    """Give a new file to the caller of sudo if the folder belongs to that user."""
    caller = sudo_caller()
    if caller is not None and os.fstat(folder).st_uid == caller[0]:
        with suppress(OSError):
            os.fchown(descriptor, *caller)


@contextmanager
def found(path: Path, *, follow: bool = True) -> Iterator[Place]:
    """Resolve `path`; OSError if one of its folders is missing. Without `follow`, a link that has
    its last name is not followed."""
    folder = os.open("/" if path.is_absolute() else ".", _FOLDER)
    left = deque(_names(path) or ["."])
    links = 0
    try:
        while True:
            name = left.popleft()
            with _opened(name, folder, is_last=not left) as opened:
                status = None if opened is None else os.fstat(opened)
                is_link = status is not None and stat.S_ISLNK(status.st_mode)
                target = None
                is_followed = is_link and (follow or bool(left)) and not _is_magic(folder)
                if opened is not None and is_followed:
                    links += 1
                    target = PurePath(_target(path, name, opened, links))
            if target is not None:
                left.extendleft(reversed(_names(target) or ["."]))
                if target.is_absolute():
                    folder = _moved(folder, "/", _FOLDER)
            elif not left:
                yield Place(path, folder, name, status)
                return
            else:
                # The text of a procfs link (/proc/self/cwd) need not lead to its target, so the
                # link is opened.
                folder = _moved(folder, name, _FOLDER & ~os.O_NOFOLLOW if is_link else _FOLDER)
    finally:
        os.close(folder)


def _names(path: PurePath) -> list[str]:
    return [name for name in path.parts if name != "/" and name != "//"]


@contextmanager
def _opened(name: str, folder: int, *, is_last: bool) -> Iterator[int | None]:
    """Open a name without following it, so that nobody can exchange a link between the check of its
    owner and the reading of its target. None if the last name of a path is free."""
    try:
        opened = os.open(name, _NAME, dir_fd=folder)
    except FileNotFoundError:
        if not is_last:
            raise
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


def _is_magic(folder: int) -> bool:
    """Return True if the links in this folder are magic links, which procfs resolves without using
    their text (proc_pid_fd(5)). The links in the root of procfs are ordinary."""
    here = os.fstat(folder)
    return here.st_ino != _PROC_ROOT_INODE and here.st_dev == Path("/proc").stat().st_dev


def _target(path: Path, name: str, link: int, links: int) -> str:
    status = os.fstat(link)
    if links > _MOST_LINKS:
        raise InputError(f"{path}: too many symbolic links", "name the file itself")
    # A user who cannot create root's links can still make a hard link to one (protected_hardlinks,
    # proc_sys_fs(5)).
    if status.st_uid not in trusted_owners() or status.st_nlink > 1:
        raise InputError(
            f"{path}: {name} is a symbolic link of user {status.st_uid}; fscost does not write"
            " through other users' links",
            f"name the file itself: {os.path.realpath(path)}",
        )
    return os.readlink("", dir_fd=link)


def _moved(folder: int, name: str, flags: int) -> int:
    """Open the folder `name` in place of `folder`, and close `folder`."""
    moved = os.open(name, flags, dir_fd=folder)
    os.close(folder)
    return moved
