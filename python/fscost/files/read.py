"""Files opened for reading that somebody else may have made: regular ones only, and never more of
them than was asked for."""

import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import IO

from fscost.errors import InputError
from fscost.files.place import kind


def open_regular(path: Path, folder: int | None = None) -> BufferedReader:
    """A regular file; with `folder`, a name in that open folder, and no link there. InputError for
    any other kind, OSError where it cannot be opened.

    It is looked at before it is opened: a FIFO would be waited for, and some devices act as soon as
    they are opened (a watchdog).
    """
    named = os.open(
        path, os.O_PATH | os.O_CLOEXEC | (0 if folder is None else os.O_NOFOLLOW), dir_fd=folder
    )
    try:
        mode = os.fstat(named).st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is {kind(mode)}, not a regular file", "name a regular file")
        return Path(f"/proc/self/fd/{named}").open("rb")
    finally:
        os.close(named)


def content(file: IO[bytes], most_bytes: int) -> bytes | None:
    """All of it, or None where that is more than `most_bytes`: a size that was looked up before
    would be one that can change."""
    found = file.read(most_bytes + 1)
    return found if len(found) <= most_bytes else None


def is_device_name(name: str) -> bool:
    """True for the path of a device, where a name or a TOML file may stand as well. Nothing is
    looked at: it may have gone."""
    return name.startswith("/dev/") and not name.endswith(".toml")
