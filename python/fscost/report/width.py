"""Width of the output medium, in a module of its own so that other modules can ask without
importing the printers."""

import os
from typing import TextIO

_PIPE_COLUMNS = 100
_NARROWEST = 60
_WIDEST = 200


def columns(file: TextIO) -> int:
    """Return COLUMNS, the terminal's width, or a default for files."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        found = int(asked)
    elif file.isatty():
        found = os.get_terminal_size(file.fileno()).columns
    else:
        found = _PIPE_COLUMNS
    return max(_NARROWEST, min(_WIDEST, found))


def given_columns(file: TextIO) -> int | None:
    """Return COLUMNS or the terminal's width; None for a pipe or a file, where nothing needs to be
    cut."""
    return columns(file) if file.isatty() or os.environ.get("COLUMNS", "").isdecimal() else None
