"""A table of texts, before it is written as anything."""

from collections.abc import Sequence
from dataclasses import dataclass

NOTHING = "–"


@dataclass(frozen=True)
class Grid:
    """The columns `left` are left-aligned, the others right-aligned. Where there is no room, the
    columns after the first `needed` are left out, and
    what is still too wide goes on in a table below. The cells of the columns `changes` are changes:
    less, more, or none."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    needed: int | None = None
    changes: Sequence[int] = ()


def plain(text: str) -> str:
    """Without control characters, which a terminal would obey: names and messages may come from a
    file that somebody sent."""
    return "".join(
        character if character.isprintable() or character == "\n" else "�"
        for character in text.replace("\t", " ")
    )
