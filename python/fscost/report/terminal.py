"""Output of a run for a terminal or a pipe; in a pipe, without colour or trailing spaces."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from fscost.report import layout
from fscost.report.width import columns
from fscost.view.breakdown import BAR, BAR_MARKS
from fscost.view.grid import Grid
from fscost.view.run import View

Line = Sequence[tuple[str, str]]
"""Pieces of text, each with its style in the words of rich."""

_MOST_READABLE = 120
"""Maximum width of sentences."""
_CHANGE_STYLES = {
    "−": "green",
    "+": "red",
    "≈": "dim",
    "b": "dim",
    "(": "dim",
    "s": "yellow",
    "f": "red",
}
"""Style by the first character of a change: less, more, no difference, baseline, not decided,
skipped, failed."""
_MARK_STYLES = dict(zip(BAR_MARKS, ("blue", "magenta", "yellow", "red", "dim"), strict=True))


_EMPTY: Line = ()


def print_view(view: View, file: TextIO, folder: str) -> None:
    """Print the view to `file`, in its width."""
    _print(_view(view, folder, columns(file)), file)


def print_parts(title: str, parts: Sequence[Grid | str], file: TextIO) -> None:
    """Print tables and lines below each other; consecutive lines follow without a gap."""
    _print(_titled_parts(title, parts, columns(file)), file)


def text(view: View, folder: str, width: int) -> str:
    """Return the view without colour."""
    return _plain(_view(view, folder, width))


def _print(lines: Iterator[Line], file: TextIO) -> None:
    if not file.isatty():
        file.write(_plain(lines))
        return
    # Only a terminal has colours: elsewhere, rich would be a tenth of `fscost show`.
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


def _plain(lines: Iterator[Line]) -> str:
    return "".join(f"{''.join(text for text, _ in line).rstrip()}\n" for line in lines)


def _view(view: View, folder: str, width: int) -> Iterator[Line]:
    yield from _sentence(view.title, width, style="bold")
    if view.headline:
        yield _EMPTY
        yield from _sentence(view.headline, width, style="bold")
    if view.summary.rows:
        yield _EMPTY
        yield from _table(view.summary, width)
    if view.legend:
        yield from _sentence(" ".join(view.legend), width)
    for grid in (*view.effects, view.pareto, view.kernels):
        if grid is not None:
            yield _EMPTY
            yield from _table(grid, width)
    if view.breakdown.grid.rows:
        yield _EMPTY
        yield from _table(view.breakdown.grid, width)
        for note in view.breakdown.notes:
            below = layout.hanging(note)
            yield from map(_marked, layout.wrapped(note, min(width, _MOST_READABLE), below))
    yield from _list(view.why_title, view.why, width)
    yield from _list("Caution", view.cautions, width)
    for grid in (view.times, view.live_times, view.disks, view.phases):
        if grid is not None and grid.rows:
            yield _EMPTY
            yield from _table(grid, width)
    if view.problems:
        yield _EMPTY
    for line in view.problems:
        for each in layout.wrapped(line, min(width, _MOST_READABLE), "  ", keep_words=True):
            yield _line(each, "yellow")
    yield _EMPTY
    for line in view.conditions:
        yield from _sentence(line, width)
    # Text to be copied, such as a path or a command, is never wrapped.
    for line in (f"Results: {folder}", *view.way_on):
        yield _line(line)


def _titled_parts(title: str, parts: Sequence[Grid | str], width: int) -> Iterator[Line]:
    yield from _sentence(title, width, style="bold")
    before: Grid | str | None = None
    for part in parts:
        if not (isinstance(part, str) and isinstance(before, str)):
            yield _EMPTY
        yield from _sentence(part, width) if isinstance(part, str) else _table(part, width)
        before = part


def _sentence(line: str, width: int, *, style: str = "") -> Iterator[Line]:
    """Wrap a sentence; further lines begin under its first word."""
    below = layout.hanging(line)
    return (_line(each, style) for each in layout.wrapped(line, min(width, _MOST_READABLE), below))


def _list(title: str, lines: Sequence[str], width: int) -> Iterator[Line]:
    if not lines:
        return
    yield _EMPTY
    yield _line(title, "bold")
    for line in lines:
        yield from _sentence(f"- {line}", width)


def _table(grid: Grid, width: int) -> Iterator[Line]:
    left_out = list(grid.header)
    for number, placed in enumerate(layout.tables(grid, width)):
        part = placed.grid
        if number:
            yield _EMPTY
        if part.title:
            yield from _sentence(part.title, width, style="bold")
        for place, lines in enumerate(layout.rows(placed)):
            for cells in lines:
                pieces: list[tuple[str, str]] = []
                for index, cell in enumerate(cells):
                    if index:
                        pieces.append((" " * placed.gap, ""))
                    pieces += _cell(part, index, cell, is_header=not place)
                yield pieces
        left_out = [name for name in left_out if name not in part.header]
    if left_out:
        yield from _sentence(f"Left out: {', '.join(left_out)} (--wide).", width)


def _cell(grid: Grid, index: int, text: str, *, is_header: bool) -> Line:
    if is_header:
        return _line(text, "bold")
    if grid.header[index] == BAR:
        return _marked(text)
    if index in grid.changes:
        word = text.strip()
        return _line(text, _CHANGE_STYLES.get(word[:1], "red" if word.endswith("×") else ""))
    return _line(text)


def _marked(text: str) -> Line:
    """Colour the marks of bars, if there is colour."""
    return [(character, _MARK_STYLES.get(character, "")) for character in text]


def _line(text: str, style: str = "") -> Line:
    return ((text, style),)
