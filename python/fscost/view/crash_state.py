"""One state after a power cut: which writes it kept, which it lost, and what each was."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fscost.crash.explore import Outcome
from fscost.crash.pieces import Piece
from fscost.crash.states import Fewest
from fscost.crash.verdict import faults
from fscost.view.grid import NOTHING, Grid, plain
from fscost.view.units import human_bytes

_MOST_LINES = 40
_LOST, _KEPT = "lost", "kept"
_DISK = 2


@dataclass(frozen=True)
class StateView:
    """`rows`: all pieces, for `--json`."""

    title: str
    faults: Sequence[str]
    grid: Grid
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


def state_view(
    name: str,
    outcome: Outcome,
    found: Sequence[Piece],
    less: Fewest | None = None,
    *,
    is_minimised: bool = False,
) -> StateView:
    """Show a state that was just examined: all its pending blocks, or those that had to be lost.
    `name`: of the profile and the state. `less`: the same state, minimised, if it is known."""
    title = plain(name)
    told = [plain(f"- {words}") for words in faults(outcome)]
    shown = [piece for piece in found if not (is_minimised and piece.is_kept)]
    lines = [_line(piece) for piece in shown[-_MOST_LINES:]]
    header = ["fate", "before the cut", "disk", "offset", "bytes", "structure", "cause", "file"]
    notes = [minimised_words(less)] if less else []
    if len(shown) > len(lines):
        notes.append(f"Left out: the {len(shown) - len(lines):,} oldest; --json has all.")
    notes += [_sum(found), *outcome.words]
    rows = [asdict(piece) for piece in found]
    left: tuple[int, ...] = (0, 2, 5, 6, 7)
    if len({piece.disk for piece in found}) < 2:
        header, lines = _without(_DISK, header), [_without(_DISK, line) for line in lines]
        left = (0, 4, 5, 6)
    grid = Grid("", header, lines, left=left)
    return StateView(title, told, grid, [plain(note) for note in notes], rows)


def minimised_words(less: Fewest) -> str:
    """Say which writes had to be lost."""
    if not less.lost:
        return "It is broken even if no pending block is lost."
    if less.lost_before == 1:
        return f"The lost block alone breaks it: {', '.join(less.writes)}."
    limit = "" if less.is_minimal else f"; after {less.trials} trials, fewer may be enough"
    return (
        f"Enough to break it, of {less.lost_before:,} lost blocks: {less.lost:,}"
        f" ({', '.join(less.writes)}){limit}. The others are kept."
    )


def minimised_values(less: Fewest) -> dict[str, Any]:
    """Return the same for `--json`."""
    return {
        "state": less.number,
        "lost": less.lost,
        "lost_before": less.lost_before,
        "trials": less.trials,
        "is_minimal": less.is_minimal,
        "writes": list(less.writes),
    }


def _line(piece: Piece) -> list[str]:
    return [
        _KEPT if piece.is_kept else _LOST,
        f"{piece.before_ns / 1e6:.1f} ms",
        piece.disk,
        f"{piece.offset:,}",
        human_bytes(piece.length),
        piece.structure or NOTHING,
        piece.cause or NOTHING,
        piece.path or NOTHING,
    ]


def _without(place: int, cells: list[str]) -> list[str]:
    return [*cells[:place], *cells[place + 1 :]]


def _sum(found: Sequence[Piece]) -> str:
    kept, lost = (
        sum(piece.length for piece in found if piece.is_kept is is_kept)
        for is_kept in (True, False)
    )
    return (
        f"Pending at the cut: {human_bytes(kept + lost)}, of which {human_bytes(kept)} reached the"
        " medium in this state. What was durable before is not listed."
    )
