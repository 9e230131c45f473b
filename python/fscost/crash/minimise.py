"""The fewest lost blocks that still break the same promise: delta debugging (ddmin of Zeller and
Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002)."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fscost.crash.explore import (
    Limits,
    Outcome,
    Source,
    State,
    examined_all,
    reference,
)
from fscost.crash.pieces import Piece, pieces
from fscost.crash.programs import Answered
from fscost.crash.verdict import Verdict, worst
from fscost.errors import HostError

MOST_TRIALS = 600
_AT_ONCE = 12
"""Trials of a batch: examiners take them side by side."""
Lost = tuple[int, ...]
"""Places of the pending blocks that a trial loses."""
Breaks = Callable[[Sequence[Lost]], list[bool]]
"""Says of the loss of each of these whether it breaks the promise."""


@dataclass(frozen=True)
class Minimised:
    """The outcome with the fewest lost blocks, how many the state itself had lost, and after how
    many trials. `is_minimal`: each of them is needed; otherwise the trials ran out."""

    outcome: Outcome
    lost: int
    lost_before: int
    trials: int
    is_minimal: bool


def minimised(found: Source, device: str, first: Outcome, answered: Answered) -> Minimised:
    """Lose fewer of the pending blocks, as long as that breaks the same promise."""
    state, target = first.state, worst(first)
    if target[0] is Verdict.SAFE:
        raise HostError("the state has no fault this time", "examine its run again")
    known, _ = reference(found, {state.at_ns}, Limits(device=device), answered)
    outcomes: dict[Lost, Outcome] = {}

    def breaks(tried: Sequence[Lost]) -> list[bool]:
        new = [lost for lost in tried if lost not in outcomes]
        states = [_losing(state, lost) for lost in new]
        outcomes.update(zip(new, examined_all(found, device, states, answered, known), strict=True))
        return [worst(outcomes[lost]) == target for lost in tried]

    kept = set(state.kept)
    lost = tuple(place for place in range(state.pending) if place not in kept)
    is_ordered = device == "in-order"
    fewest, is_minimal = (
        (fewest_last(lost, breaks), True) if is_ordered else fewest_lost(lost, breaks, MOST_TRIALS)
    )
    outcome = first if fewest == lost else outcomes[fewest]
    return Minimised(outcome, len(fewest), len(lost), len(outcomes), is_minimal)


def writes(found: Source, device: str, less: Minimised) -> list[str]:
    """Return what the lost blocks are, in words, without repetitions."""
    if not less.lost:
        return []
    blocks = pieces(found.recording, device, less.outcome.state)
    return list(dict.fromkeys(named(piece) for piece in blocks if not piece.is_kept))


def named(piece: Piece) -> str:
    """Return the structure and the file of blocks in words."""
    name = piece.structure or "unknown"
    return f"{name} of {piece.path}" if piece.path else name


def fewest_last(lost: Lost, breaks: Breaks) -> Lost:
    """Return as few of the last blocks as are enough: a disk that keeps the order loses no
    others."""
    if not lost or breaks([()])[0]:
        return ()
    too_few, enough = 0, len(lost)
    while enough - too_few > 1:
        between = enough - too_few
        steps = {too_few + between * step // (_AT_ONCE + 1) for step in range(1, _AT_ONCE + 1)}
        counts = sorted(steps - {too_few})
        for count, is_broken in zip(
            counts, breaks([lost[-count:] for count in counts]), strict=True
        ):
            if is_broken:
                enough = count
                break
            too_few = count
    return lost[-enough:]


def fewest_lost(lost: Lost, breaks: Breaks, most: int) -> tuple[Lost, bool]:
    """Return a part of the blocks that is enough, and True if each of them is needed. `breaks` says
    whether the loss of each part breaks the promise; it is asked about `most` parts."""
    if not lost or breaks([()])[0]:
        return (), True
    left, parts = most - 1, 2
    while len(lost) > 1:
        smaller = None
        for batch in _batches(_candidates(lost, parts)):
            if left < len(batch):
                return lost, False
            left -= len(batch)
            found = [
                each for each, is_broken in zip(batch, breaks(batch), strict=True) if is_broken
            ]
            if found:
                smaller = min(found, key=len)
                break
        if smaller is not None:
            is_complement = len(smaller) > len(lost) // 2
            lost, parts = smaller, max(parts - 1, 2) if is_complement else 2
        elif parts == len(lost):
            break
        else:
            parts = min(2 * parts, len(lost))
    return lost, True


def _candidates(lost: Lost, parts: int) -> Iterator[Lost]:
    """Divide the blocks into `parts`. Yield each part, then all blocks without each part."""
    edges = [number * len(lost) // parts for number in range(parts + 1)]
    pairs = list(itertools.pairwise(edges))
    yield from (lost[begin:end] for begin, end in pairs)
    if parts > 2:
        yield from (lost[:begin] + lost[end:] for begin, end in pairs)


def _batches(candidates: Iterator[Lost]) -> Iterator[list[Lost]]:
    waiting = list(candidates)
    for at in range(0, len(waiting), _AT_ONCE):
        yield waiting[at : at + _AT_ONCE]


def _losing(state: State, lost: Lost) -> State:
    gone = set(lost)
    kept = [place for place in range(state.pending) if place not in gone]
    return replace(state, kept=kept, how="minimised")
