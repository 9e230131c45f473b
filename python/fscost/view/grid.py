"""A table of texts, independent of its output format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

NOTHING = "–"
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Grid:
    """A table of texts. The columns in `left` are left-aligned, the others right-aligned.

    If the width is too small, the columns after the first `needed` are left out, and columns that
    still do not fit continue in a table below. Cells of the columns in `changes` are changes: less,
    more, or none.

    Its texts are `plain`: names and messages may come from an untrusted file.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    needed: int | None = None
    changes: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Make all texts plain here, so that no maker of a grid can forget it."""
        rows = [tuple(map(plain, row)) for row in self.rows]
        texts = {"title": plain(self.title), "header": tuple(map(plain, self.header)), "rows": rows}
        for name, value in texts.items():
            object.__setattr__(self, name, value)


def or_nothing(value: _Value | None, text: Callable[[_Value], str]) -> str:
    """Return the text of a value, or the mark of a missing value."""
    return NOTHING if value is None else text(value)


def plain(text: str) -> str:
    """Replace control characters, which a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else "�"
        for character in text.replace("\t", " ")
    )
