"""Descriptors of files and folders, closed when a block ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def descriptor(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Open a file or a folder as open(2) does; with `folder`, relative to that open folder. A file
    that is created has mode 0600."""
    number = os.open(path, flags | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        yield number
    finally:
        os.close(number)
