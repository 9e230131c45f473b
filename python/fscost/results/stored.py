"""Recordings that are in a store that the machines of a cluster share, not in the run's folder."""

import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fscost.results.manifest import CellRecord

STORED = "stored_recording"
"""Fact about a cell whose recording is in a store."""


@dataclass(frozen=True)
class Stored:
    """A recording's place: its name below the store's URL, and its content."""

    url: str
    name: str
    size_bytes: int
    sha256: str

    def fact(self) -> dict[str, Any]:
        """Return the fact `STORED` of its cell."""
        return asdict(self)


def stored(cell: CellRecord) -> Stored | None:
    """Return the place of a cell's recording in a store, or None. A manifest is untrusted."""
    fact = cell.facts.get(STORED)
    if not isinstance(fact, dict) or fact.keys() != Stored.__annotations__.keys():
        return None
    types = {"url": str, "name": str, "size_bytes": int, "sha256": str}
    return Stored(**fact) if all(type(fact[name]) is of for name, of in types.items()) else None


def how_to_fetch(cells: Iterable[CellRecord]) -> str:
    """Return the command that fetches the recordings of these cells; empty if none is stored. It
    is for a shell, and the URL may be a stranger's."""
    url = next((found.url for cell in cells if (found := stored(cell)) is not None), None)
    return "" if url is None else f"`fscost recording fetch RUN --from {shlex.quote(url)}`"
