"""Names and what they mean, one line each."""

from collections.abc import Sequence

from fscost.view.grid import plain


def print_lines(entries: Sequence[tuple[str, str]]) -> None:
    """The names in a column as wide as the longest."""
    width = max((len(name) for name, _ in entries), default=0)
    for name, meaning in entries:
        print(plain(f"{name:{width}}  {meaning}".rstrip()))
