"""A table of texts, before it is written as anything."""

from collections.abc import Sequence
from dataclasses import dataclass

NOTHING = "–"


@dataclass(frozen=True)
class Grid:
    """The columns `left` are left-aligned, the others right-aligned."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)


def plain(text: str) -> str:
    """Without control characters, which a terminal would obey: names and messages may come from a
    file that somebody sent."""
    return "".join(
        character if character.isprintable() or character == "\n" else "�"
        for character in text.replace("\t", " ")
    )
