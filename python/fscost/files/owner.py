"""Ownership of files that root creates for the user who called sudo: they are given to that user.

No file is changed by its path. A folder belongs to root while root writes in it, so nobody can
replace a file before it is given away. Only root's regular files and folders with a single name are
given away, and none that belonged to root before.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fscost.files.descriptor import descriptor
from fscost.files.place import Ids, sudo_caller
from fscost.files.trust import make_folder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def given_to_caller(folder: Path) -> Iterator[None]:
    """Give everything that the block creates in `folder` to the caller of sudo, including `folder`
    and the folders created for it. Folders that the block leaves empty are removed again."""
    caller = sudo_caller()
    if caller is None:
        yield
        return
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    with ExitStack() as stack:
        make_folder(folder)
        opened = [stack.enter_context(descriptor(each, _FOLDER)) for each in missing]
        run = opened[0] if missing else stack.enter_context(descriptor(folder, _FOLDER))
        # Folders made just now belong to root and hold only each other; anything else in
        # them was put there by another user.
        are_ours = all(os.fstat(each).st_uid == 0 for each in opened) and (
            not missing or not os.listdir(run)  # noqa: PTH208  # of an open folder
        )
        is_known = are_ours and os.fstat(run).st_uid in (0, caller[0])
        before = _take_back(run, caller) if is_known else frozenset[Ids]()
        try:
            yield
        finally:
            for each in missing:
                with suppress(OSError):
                    each.rmdir()
            with suppress(OSError):
                if is_known:
                    _each(".", lambda each: _give(each, caller, before), run)
                    for number in opened:
                        _give(number, caller, before)


def _take_back(folder: int, caller: Ids) -> frozenset[Ids]:
    """Make root the owner of all folders in `folder`; return the files that belonged to root
    before."""
    before = set()

    def take(opened: int) -> None:
        status = os.fstat(opened)
        if not stat.S_ISDIR(status.st_mode):
            if status.st_uid == 0:
                before.add((status.st_dev, status.st_ino))
        elif status.st_uid == caller[0]:
            os.fchown(opened, 0, 0)
            os.fchmod(opened, stat.S_IMODE(status.st_mode) & ~0o022)

    with suppress(OSError):
        _each(".", take, folder, is_folder_first=True)
    return frozenset(before)


def _give(opened: int, caller: Ids, before: frozenset[Ids]) -> None:
    status = os.fstat(opened)
    is_folder = stat.S_ISDIR(status.st_mode)
    is_single = is_folder or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
    if is_single and status.st_uid == 0 and (status.st_dev, status.st_ino) not in before:
        os.fchown(opened, *caller)


def _each(
    path: Path | str,
    do: Callable[[int], None],
    within: int | None = None,
    *,
    is_folder_first: bool = False,
) -> None:
    """Call `do` on the folder, and on every file and folder in it. Links are not followed."""
    with descriptor(path, _FOLDER, within) as folder:
        if is_folder_first:
            do(folder)
        for name in os.listdir(folder):  # noqa: PTH208  # of an open folder
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _each(name, do, folder, is_folder_first=is_folder_first)
            elif stat.S_ISREG(status.st_mode):
                with descriptor(name, _FILE, folder) as file:
                    do(file)
        if not is_folder_first:
            do(folder)
