"""Layout of tables and sentences as lines of a given width. A number is never separated from its
unit, and no text is cut off."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fscost.view.grid import Grid

_LONGEST_WORD = 24
"""Length from which a word may be broken."""
_BEHIND_PLUS = r"(?<=\w\+)(?=\w)"
"""Position after a plus sign, where joined names, such as causes, may be broken."""
_TIE = "\u00a0"
"""A space at which no line breaks; it becomes an ordinary space in the output."""
_TIES = re.compile(
    r"(?<=\d) (?=(?:[KMGTP]i?B|B|M|%|s|ms|µs|ns|min|h|years?|days?)\b|%)|(?<=[≈~±<>])"
    r" (?=[\d.])|(?<=→) "
)


_LEAD = re.compile(r" *(?:- |\S{1,12}: )")
"""A bullet or a short label before the first word of a line."""


def hanging(text: str) -> str:
    """Return the indent of the lines below the first: under the first word after a bullet or a
    label, such as "Why: "."""
    lead = _LEAD.match(text)
    return " " * lead.end() if lead else ""


class _Wrapper(textwrap.TextWrapper):
    wordsep_simple_re = re.compile(rf"([\t\n\x0b\x0c\r ]+|{_BEHIND_PLUS})")


def wrapped(text: str, width: int, indent: str = "", *, keep_words: bool = False) -> list[str]:
    """Wrap text at spaces; lines after the first begin with `indent`. `keep_words`: leave a word
    that is longer than a line whole, for a path that is to be copied."""
    lines = []
    for part in text.split("\n"):
        tied = _TIES.sub(_TIE, part)
        found = _Wrapper(
            max(width, 1),
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=not keep_words,
            drop_whitespace=True,
        ).wrap(tied)
        lines += [line.replace(_TIE, " ") for line in found] or [""]
    return lines


@dataclass(frozen=True)
class Placed:
    """A grid, or a part of one, with the widths of its columns, which are `gap` spaces apart."""

    grid: Grid
    widths: Sequence[int]
    gap: int


def tables(grid: Grid, width: int) -> Iterator[Placed]:
    """Yield the grid, or parts of it whose columns fit side by side."""
    least = [max(map(_longest_word, column)) for column in _columns(grid)]
    chosen = list(range(len(grid.header)))
    gap = 2 if _width(least, chosen, 2) <= width else 1
    needed = len(chosen) if grid.needed is None else grid.needed
    while len(chosen) > needed and _width(least, chosen, gap) > width:
        chosen.pop()
    title = grid.title
    while chosen:
        fitting = list(chosen)
        while len(fitting) > 2 and _width(least, fitting, gap) > width:
            fitting.pop()
        part = _part(grid, fitting, title)
        yield Placed(part, _widened(part, [least[index] for index in fitting], width, gap), gap)
        rest = [index for index in chosen if index not in fitting]
        chosen = [0, *rest] if rest else []
        title = f"{grid.title.partition(';')[0]} (continued)" if grid.title else ""


def _columns(grid: Grid) -> list[list[str]]:
    return [[name, *(row[index] for row in grid.rows)] for index, name in enumerate(grid.header)]


def _longest_word(text: str) -> int:
    words = re.split(rf"[ \n]|{_BEHIND_PLUS}", _TIES.sub(_TIE, text))
    return min(_LONGEST_WORD, max(map(len, words)))


def _width(widths: Sequence[int], chosen: Sequence[int], gap: int) -> int:
    return sum(widths[index] for index in chosen) + gap * (len(chosen) - 1)


def _part(grid: Grid, chosen: Sequence[int], title: str) -> Grid:
    def places(named: Sequence[int]) -> list[int]:
        return [place for place, index in enumerate(chosen) if index in named]

    rows = [[row[index] for index in chosen] for row in grid.rows]
    return Grid(
        title,
        [grid.header[index] for index in chosen],
        rows,
        places(grid.left),
        changes=places(grid.changes),
    )


def _widened(grid: Grid, widths: list[int], width: int, gap: int) -> list[int]:
    """Distribute the spare width: first to the first column, then to the others, as far as they
    need it."""
    spare = width - _width(widths, range(len(widths)), gap)
    for index, column in enumerate(_columns(grid)):
        wanted = max(len(line) for text in column for line in text.split("\n"))
        more = max(0, min(wanted - widths[index], spare))
        widths[index] += more
        spare -= more
    return widths


def rows(placed: Placed) -> Iterator[list[list[str]]]:
    """Yield the header and each row, as lines of cells padded to their widths."""
    grid, widths = placed.grid, placed.widths
    for row in (grid.header, *grid.rows):
        cells = [wrapped(text, widths[index]) for index, text in enumerate(row)]
        height = max(map(len, cells))
        yield [
            [
                _aligned(cell[line] if line < len(cell) else "", widths[index], index in grid.left)
                for index, cell in enumerate(cells)
            ]
            for line in range(height)
        ]


def _aligned(text: str, width: int, is_left: bool) -> str:
    return text.ljust(width) if is_left else text.rjust(width)
