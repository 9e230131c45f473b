"""Ownership of run folders, and what may be removed from them.

A run's folder determines which command runs, as which user, and which folders are removed. It is
therefore used only if nobody but the caller controls its content, as ssh does with its keys and git
with `safe.directory`.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fscost.errors import InputError
from fscost.files.descriptor import descriptor
from fscost.files.place import found, kind, trusted_owners
from fscost.files.write import sync_folder

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def own_folder(path: Path, inside: Sequence[str] = (), *, trust: bool = False) -> Iterator[int]:
    """Open a run's folder. InputError if another user owns it or a folder named in `inside`, or can
    write there, unless the caller sets `trust`. A link in place of one of these folders is always
    refused. OSError if there is no folder."""
    with found(path) as place, descriptor(place.name, _OPEN, place.folder) as folder:
        _check(path, os.fstat(folder), trust=trust)
        for name in inside:
            with suppress(FileNotFoundError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                _check(path / name, status, trust=trust)
        yield folder


def replaceable(path: Path, owners: Collection[int]) -> tuple[Path, str] | None:
    """First of `path` and the folders above it whose content users outside `owners` can rename, and
    a verb phrase that says why; None if there is none. Folders that do not exist are left out. The
    rule is that of StrictModes in sshd_config(5)."""
    resolved = path.resolve()
    for part in (resolved, *resolved.parents):
        with suppress(FileNotFoundError):
            status = part.stat()
            if status.st_uid not in owners:
                return part, f"belongs to {_name(status.st_uid)}"
            may_group_write = status.st_gid == os.getegid() and part != resolved
            others = status.st_mode & (stat.S_IWOTH if may_group_write else _OTHERS_WRITE)
            # In a sticky folder, only an entry's owner can rename it (inode(7)); the entry itself
            # is checked.
            if others and not status.st_mode & stat.S_ISVTX:
                return part, "can be written by other users"
    return None


def refuse_replaceable(folder: Path, *, trust: bool = False) -> None:
    """Refuse a place for a run whose folders another user could exchange while the run writes,
    unless the caller sets `trust`. Another user's link on the way is always refused."""
    with suppress(OSError), found(folder):
        pass
    unsafe = None if trust else replaceable(folder.absolute().parent, trusted_owners())
    if unsafe is not None:
        part, why = unsafe
        raise InputError(
            f"{folder} is not safe: {part} {why}, who could exchange the run's folder while it is"
            " written",
            "name a folder elsewhere with --out, or add --trust",
        )


def make_folder(path: Path) -> None:
    """Create the folder and its missing parents. Other users cannot write there, whatever the
    umask."""
    for each in (*reversed(path.parents), path):
        if not each.is_dir():
            each.mkdir(mode=0o755)
            sync_folder(each.parent)


def remove_folders(folder: Path, inside: str, is_ours: Callable[[str], object]) -> None:
    """Remove the folders in `folder`/`inside` whose names are ours, then `inside` if it is empty.
    Links are not followed; anything that cannot be removed stays."""
    with suppress(OSError), descriptor(folder, _OPEN) as parent:
        with descriptor(inside, _OPEN, parent) as within:
            for name in filter(is_ours, os.listdir(within)):  # noqa: PTH208  # of an open folder
                shutil.rmtree(name, ignore_errors=True, dir_fd=within)
        os.rmdir(inside, dir_fd=parent)  # in an open folder


def _check(path: Path, status: os.stat_result, *, trust: bool) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise InputError(
            f"{path} is {kind(status.st_mode)}, not a folder of a run",
            "name the folder of another run",
        )
    if trust:
        return
    if status.st_uid not in trusted_owners():
        raise InputError(
            f"{path} belongs to {_name(status.st_uid)}, who could make fscost run commands and"
            " remove folders",
            "look at its manifest.json; if it is what you expect, add --trust",
        )
    if status.st_mode & _OTHERS_WRITE:
        raise InputError(
            f"others can write to {path} (mode {stat.S_IMODE(status.st_mode):04o}), and could make"
            " fscost run commands and remove folders",
            "look at its manifest.json; if it is what you expect, chmod go-w the folder, or add"
            " --trust",
        )


def _name(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
