"""Safe reading of files that another user may have made: regular files only, and never more bytes
than requested."""

import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import IO

from fscost.errors import InputError
from fscost.files.descriptor import descriptor
from fscost.files.place import kind


def open_regular(path: Path, folder: int | None = None) -> BufferedReader:
    """Open a regular file; with `folder`, by its name in that open folder, and not through a link.
    InputError for any other type of file, OSError if it cannot be opened.

    The type is checked before the file is opened: opening a FIFO could block, and some devices act
    as soon as they are opened (a watchdog).
    """
    flags = os.O_PATH if folder is None else os.O_PATH | os.O_NOFOLLOW
    with descriptor(path, flags, folder) as named:
        mode = os.fstat(named).st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is {kind(mode)}, not a regular file", "name a regular file")
        return Path(f"/proc/self/fd/{named}").open("rb")


def content(file: IO[bytes], most_bytes: int) -> bytes | None:
    """Read the whole file; None if it holds more than `most_bytes`. The size is not looked up
    first, because it could change before the read."""
    found = file.read(most_bytes + 1)
    return found if len(found) <= most_bytes else None


def proc_field(file: Path, name: str) -> str | None:
    """Value of a line `NAME: VALUE` in a file of procfs (proc_pid_status(5), proc_meminfo(5))."""
    lines = (line.partition(":") for line in file.read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.rstrip() == name), None)


def is_device_name(name: str) -> bool:
    """Return True for the path of a device, in places that also accept a name or a TOML file. Only
    the text is checked: the device may no longer exist."""
    return name.startswith("/dev/") and not name.endswith(".toml")
