"""A run for people at a terminal, or in a pipe: there without colour and without trailing
blanks."""

import os
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fscost.view.breakdown import BAR, BAR_COLUMNS, BAR_MARKS, Breakdown
from fscost.view.grid import Grid
from fscost.view.run import View

_PIPE_COLUMNS = 110
_WIDE = 100
_ROOMY = 115
_NARROWEST = 80
_WIDEST = 120
_VERDICT_STYLES = {"less": "green", "more": "red", "not shown": "dim", "baseline": "dim"}
_COLUMNS_PER_PROFILE = 10
_LONGEST_WORD = 16
_NARROW_COLUMNS = {
    "device written": 8,
    "ratio": 8,
    "verdict": 8,
    "wall": 8,
    "CPU": 6,
    "space": 6,
} | dict.fromkeys(("data", "journal", "metadata", "unknown", "of it atime"), 8)
_MARK_STYLES = dict(zip(BAR_MARKS, ("blue", "magenta", "yellow", "red", "dim"), strict=True))


def print_view(view: View, file: TextIO, folder: str) -> None:
    """Write it to `file`, as wide as that is (80 to 120 columns)."""
    if file.isatty():
        _print(view, Console(file=file, width=columns(file), highlight=False), folder)
        return
    file.write(text(view, folder, columns(file)))


def print_parts(title: str, parts: Sequence[Grid | str], file: TextIO) -> None:
    """Tables and lines below each other, lines that follow each other without a gap."""
    if file.isatty():
        _print_parts(title, parts, Console(file=file, width=columns(file), highlight=False))
        return
    buffer = StringIO()
    _print_parts(
        title,
        parts,
        Console(
            file=buffer,
            width=columns(file),
            color_system=None,
            force_terminal=False,
            highlight=False,
        ),
    )
    file.write("".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines()))


def _print_parts(title: str, parts: Sequence[Grid | str], console: Console) -> None:
    console.print(Text(title, style="bold"))
    before: Grid | str | None = None
    for part in parts:
        if not (isinstance(part, str) and isinstance(before, str)):
            console.print()
        if isinstance(part, str):
            console.print(Text(part))
        else:
            if part.title:
                console.print(Text(part.title, style="bold"))
            console.print(_table(part, console.width))
        before = part


def text(view: View, folder: str, width: int) -> str:
    """Without colour."""
    buffer = StringIO()
    _print(
        view,
        Console(file=buffer, width=width, color_system=None, force_terminal=False, highlight=False),
        folder,
    )
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def columns(file: TextIO) -> int:
    """COLUMNS, the terminal's, or what suits a file."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        found = int(asked)
    elif file.isatty():
        found = os.get_terminal_size(file.fileno()).columns
    else:
        found = _PIPE_COLUMNS
    return max(_NARROWEST, min(_WIDEST, found))


def given_columns(file: TextIO) -> int | None:
    """COLUMNS or the terminal's; None for a pipe or a file, where nothing needs to be cut."""
    return columns(file) if file.isatty() or os.environ.get("COLUMNS", "").isdecimal() else None


def _print(view: View, console: Console, folder: str) -> None:
    console.print(Text(view.title, style="bold"))
    console.print()
    if view.summary.rows:
        console.print(_table(view.summary, console.width))
        console.print()
    for line in view.about:
        console.print(Text(line))
    _print_breakdown(view.breakdown, console)
    if view.disks is not None and view.disks.rows:
        console.print()
        console.print(Text(view.disks.title, style="bold"))
        console.print(_table(view.disks, console.width))
    for part in _parts(view.phases, console.width):
        console.print()
        console.print(Text(part.title, style="bold"))
        console.print(_table(part, console.width))
    if view.problems:
        console.print()
    for line in view.problems:
        console.print(Text(line, style="yellow"))
    console.print()
    for line in (f"Results: {folder}", *view.way_on):
        console.print(Text(line), soft_wrap=True)


def _print_breakdown(found: Breakdown, console: Console) -> None:
    if not found.grid.rows:
        return
    console.print()
    console.print(Text(found.grid.title, style="bold"))
    console.print(_table(found.grid, console.width))
    for line in found.notes:
        console.print(_marked(line))
    sentences = Table.grid(padding=(0, 1, 0, 0))
    for line in found.findings:
        sentences.add_row("-", Text(line))
    if found.findings:
        console.print(sentences)


def _table(grid: Grid, width: int) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 1 if width < _ROOMY else 2, 0, 0), header_style="bold"
    )
    names = [row[0] for row in grid.rows]
    longest = max(map(len, names), default=0)
    word = max((len(part) for name in names for part in name.split()), default=0)
    for index, name in enumerate(grid.header):
        first, bar = index == 0, name == BAR
        table.add_column(
            Text(name),
            justify="left" if index in grid.left else "right",
            overflow="fold",
            # On a narrow terminal those give way that read well in two lines, not names or numbers.
            min_width=min(word, _LONGEST_WORD) if first else BAR_COLUMNS if bar else None,
            max_width=_NARROW_COLUMNS.get(name) if width < _WIDE else None,
            no_wrap=bar or (first and width >= _WIDE and longest <= _WIDE // 3),
        )
    for row in grid.rows:
        cells = [Text(cell, style=_VERDICT_STYLES.get(cell, "")) for cell in row]
        table.add_row(
            *(
                _marked(row[index]) if grid.header[index] == BAR else cell
                for index, cell in enumerate(cells)
            )
        )
    return table


def _marked(text: str) -> Text:
    """With the marks of bars in their colours, where there is colour."""
    marked = Text()
    for character in text:
        marked.append(character, _MARK_STYLES.get(character))
    return marked


def _parts(grid: Grid, width: int) -> Iterator[Grid]:
    """Tables of as many profiles as fit beside each other."""
    if len(grid.header) < 2:
        return
    room = max(1, (width - 16) // (_COLUMNS_PER_PROFILE + 2))
    for begin in range(1, len(grid.header), room):
        chosen = [0, *range(begin, min(begin + room, len(grid.header)))]
        title = grid.title if begin == 1 else f"{grid.title.partition(';')[0]} (continued)"
        yield Grid(
            title, [grid.header[i] for i in chosen], [[row[i] for i in chosen] for row in grid.rows]
        )
