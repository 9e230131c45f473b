"""What the pending blocks of a state were: which of them were kept, and the structure, cause and
file of each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fscost import capture
from fscost.analyze import explain
from fscost.crash.explore import State

_COLUMNS = ("event", "offset", "length", "structure", "home_structure", "cause", "path")


@dataclass(frozen=True)
class Piece:
    """Contiguous pending blocks of one request with the same fate and the same explanation.

    `before_ns`: time from the request's submission to the cut.
    """

    event: int
    before_ns: int
    disk: str
    offset: int
    length: int
    is_kept: bool
    structure: str
    cause: str
    path: str | None


_Row = tuple[int, int, str, str, str | None]
"""Offset, end, structure, cause and path of an explained extent."""


def pieces(recording: Path, device: str, state: State) -> list[Piece]:
    """Return the pending blocks of a state, in the order in which the disk received them."""
    pending = capture.crash(recording).pending(state.at_ns, device)
    kept = set(state.kept)
    events = {event for event, _, _, _ in pending}
    rows = _rows(recording, events)
    begun = _begun(recording, events)
    found: list[Piece] = []
    with capture.opened(recording) as opened:
        names = [str(disk["name"]) for disk in opened.info()["disks"]]
    for place, (event, disk, offset, length) in enumerate(pending):
        structure, cause, path = _explained(rows.get(event, ()), offset, offset + length)
        piece = Piece(
            event,
            state.at_ns - begun.get(event, state.at_ns),
            names[disk],
            offset,
            length,
            place in kept,
            structure,
            cause,
            path,
        )
        if found and (whole := _joined(found[-1], piece)) is not None:
            found[-1] = whole
        else:
            found.append(piece)
    return found


def _rows(recording: Path, events: set[int]) -> Mapping[int, Sequence[_Row]]:
    wanted = pa.array(sorted(events), pa.uint64())
    found: dict[int, list[_Row]] = defaultdict(list)
    for batch in explain(recording).batches():
        few = batch.filter(pc.is_in(batch.column("event"), value_set=wanted))
        columns = [few.column(name).to_pylist() for name in _COLUMNS]
        for event, offset, length, structure, home, cause, path in zip(*columns, strict=True):
            what = structure if home is None else f"{structure} of {home}"
            found[event].append((offset, offset + length, what, cause, path))
    return found


def _begun(recording: Path, events: set[int]) -> Mapping[int, int]:
    wanted = pa.array(sorted(events), pa.uint64())
    found: dict[int, int] = {}
    for batch in capture.requests(recording):
        few = batch.filter(pc.is_in(batch.column("event"), value_set=wanted))
        columns = (few.column(name).to_pylist() for name in ("event", "submit_ns"))
        found.update(zip(*columns, strict=True))
    return found


def _explained(rows: Sequence[_Row], begin: int, end: int) -> tuple[str, str, str | None]:
    """Return the structures, causes and the only path of the rows within a block."""
    here = [row for row in rows if row[0] < end and row[1] > begin]
    structures = "+".join(dict.fromkeys(row[2] for row in here))
    causes = "+".join(dict.fromkeys(row[3] for row in here))
    paths = {row[4] for row in here}
    return structures, causes, paths.pop() if len(paths) == 1 else None


def _joined(before: Piece, piece: Piece) -> Piece | None:
    """Return both pieces as one, if the second continues the first."""
    end = replace(before, offset=before.offset + before.length, length=piece.length)
    return replace(before, length=before.length + piece.length) if end == piece else None
