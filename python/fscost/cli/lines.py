"""Lists of names and meanings, as wide as the terminal."""

import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from fscost.report import document
from fscost.report.layout import hanging
from fscost.report.width import given_columns
from fscost.view.grid import plain

_LEAST_WORDS = 30
_INDENT = 4


def say(line: str) -> None:
    """Print a line to standard error, so that it does not mix with tables."""
    print(plain(line), file=sys.stderr, flush=True)


def print_document(kind: str, value: Mapping[str, Any]) -> None:
    """Print a JSON document."""
    sys.stdout.write(document.text(kind, value))


def wrapped(text: str) -> str:
    """Return the text wrapped to the terminal's width, or on one line in a pipe or a file."""
    columns = given_columns(sys.stdout)
    return text if columns is None else "\n".join(_wrapped(text, columns, "", hanging(text)))


def print_lines(entries: Sequence[tuple[str, str]]) -> None:
    """Print names and meanings in two columns. A pipe or a file gets one line for each name.

    Meanings go below the names if the names leave too little room.
    """
    width = max((len(name) for name, _ in entries), default=0)
    columns = given_columns(sys.stdout)
    for name, meaning in entries:
        begin, below = f"{name:{width}}  ", " " * _INDENT
        if columns is None:
            lines = [begin + meaning]
        elif columns - len(begin) >= _LEAST_WORDS:
            lines = _wrapped(meaning, columns, begin, " " * len(begin))
        else:
            lines = [name, *_wrapped(meaning, columns, below, below)]
        for line in lines or [name]:
            print(plain(line.rstrip()))


def _wrapped(text: str, columns: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text, columns, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )
