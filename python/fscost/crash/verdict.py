"""Verdict on a profile, from the outcomes of its states."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fscost.crash.explore import Exploration, Outcome, State
from fscost.crash.promises import (
    DATA_LOST,
    DATED,
    EMPTIED,
    LOST,
    NAMES_LOST,
    STALE,
    TORN,
    UNNAMED,
    UNPROMISED,
    UNREADABLE,
)
from fscost.crash.sqlite import DAMAGED


class Verdict(StrEnum):
    """The worst that was seen. `SAFE`: no broken promise in the states that were examined;
    `ALLOWED_LOSS`: none, but work that nobody had made durable is lost."""

    SAFE = "SAFE"
    ALLOWED_LOSS = "ALLOWED-LOSS"
    NEEDS_REPAIR = "NEEDS-REPAIR"
    EXPOSES_STALE = "EXPOSES-STALE"
    LOSES_ACKED = "LOSES-ACKED"
    CORRUPTS = "CORRUPTS"


FAULTS = {
    Verdict.LOSES_ACKED: "lost",
    Verdict.EXPOSES_STALE: "stale",
    Verdict.CORRUPTS: "corrupt",
    Verdict.NEEDS_REPAIR: "repaired",
}
"""The word for the states with each fault."""
_OF = {
    STALE: (Verdict.EXPOSES_STALE, "holds bytes of another file"),
    LOST: (Verdict.LOSES_ACKED, "is not what was promised"),
    TORN: (Verdict.LOSES_ACKED, "is neither the old nor the new version"),
    DATED: (Verdict.LOSES_ACKED, "has another modification time than promised"),
    UNREADABLE: (Verdict.LOSES_ACKED, "cannot be read"),
    DAMAGED: (Verdict.CORRUPTS, "is not sound"),
}
"""Verdict and words of each kind of broken promise."""
KINDS = (*_OF, *UNPROMISED)
"""Kinds of broken promises."""
LOST_S = (DATA_LOST, NAMES_LOST)
"""Kinds whose places are seconds of lost work."""


@dataclass(frozen=True)
class Judged:
    """A verdict, the number of states with each fault, and the first state of the worst one.
    `silent`: states with a broken promise that neither the kernel nor a check reports.
    `emptied`: states in which a file that was replaced without fsync is neither version; `unnamed`:
    states in which a synced file has no name, because its folder was not synced. No call promised
    otherwise, but many programs expect it. `repair_s`: the longest repair. `lost_s`: seconds of
    unsynced work that each state has lost, by kind; empty if the workload has none."""

    verdict: Verdict
    counts: dict[str, int]
    example: str
    example_number: int | None
    emptied: int
    unnamed: int = 0
    silent: int = 0
    repair_s: float = 0
    lost_s: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def counted(self) -> dict[str, int]:
        """Numbers of states, by the word for what is wrong with them."""
        faults = {word: self.counts.get(verdict, 0) for verdict, word in FAULTS.items()}
        return {**faults, "silent": self.silent, "emptied": self.emptied}


def judged(found: Exploration) -> Judged:
    """Judge a profile by all its states."""
    counts: Counter[Verdict] = Counter()
    examples: dict[Verdict, tuple[int, str]] = {}
    for number, outcome in enumerate(found.outcomes, start=1):
        for verdict, words in _faults(outcome).items():
            counts[verdict] += 1
            text = f"state {number}, {named(outcome.state)}: {words}"
            examples.setdefault(verdict, (number, text))
    worst = max(counts, key=list(Verdict).index, default=Verdict.SAFE)
    lost_s = _lost_s(found)
    if worst is Verdict.SAFE and lost_s:
        worst = Verdict.ALLOWED_LOSS
    emptied, unnamed = (_having(found, kind) for kind in (EMPTIED, UNNAMED))
    told = {each.value: counts[each] for each in counts}
    first, example = examples.get(worst, (None, ""))
    silent = sum(outcome.is_silent for outcome in found.outcomes)
    repair_s = max((outcome.repair_s for outcome in found.outcomes), default=0.0)
    return Judged(worst, told, example, first, emptied, unnamed, silent, repair_s, lost_s)


def _having(found: Exploration, kind: str) -> int:
    """Return the number of states with a fault of this kind."""
    return sum(any(each == kind for each, _ in outcome.broken) for outcome in found.outcomes)


def _lost_s(found: Exploration) -> dict[str, list[float]]:
    """Return how many seconds of unsynced work each state has lost, by kind."""
    each = [dict(outcome.broken) for outcome in found.outcomes]
    if not any(kind in broken for broken in each for kind in LOST_S):
        return {}
    return {kind: [float(broken.get(kind, 0)) for broken in each] for kind in LOST_S}


def faults(outcome: Outcome) -> tuple[str, ...]:
    """Return the faults of a state in words, the worst first."""
    found = _faults(outcome)
    return tuple(found[verdict] for verdict in reversed(Verdict) if verdict in found)


def worst(outcome: Outcome) -> tuple[Verdict, str]:
    """Return the worst verdict on a state, and the file that it is about, if it is about one."""
    found = _faults(outcome)
    verdict = max(found, key=list(Verdict).index, default=Verdict.SAFE)
    files = [
        where.split(" ")[0].strip(",")
        for kind, where in outcome.broken
        if kind in _OF and _OF[kind][0] is verdict
    ]
    return verdict, files[0] if files else ""


def kind_of(outcome: Outcome) -> tuple[str, str]:
    """Return the kind and place of the first broken promise that is as bad as the worst fault; both
    are empty if that is no promise."""
    verdict, _ = worst(outcome)
    for kind, where in outcome.broken:
        if kind in _OF and _OF[kind][0] is verdict:
            return kind, where
    return "", ""


def worse(first: Outcome, second: Outcome) -> tuple[str, ...]:
    """Return the faults of a second state, in words, whose kinds its first state has not."""
    known, found = _faults(first), _faults(second)
    return tuple(found[each] for each in reversed(Verdict) if each in found and each not in known)


def _faults(outcome: Outcome) -> dict[Verdict, str]:
    found = {}
    if outcome.stops_kernel:
        found[Verdict.CORRUPTS] = "stops the kernel"
    elif not outcome.mounts:
        found[Verdict.CORRUPTS] = "cannot be mounted, even after a repair"
    elif not outcome.is_clean:
        found[Verdict.CORRUPTS] = "has errors after recovery that no repair corrects"
    elif outcome.needs_repair:
        found[Verdict.NEEDS_REPAIR] = "has errors after recovery, which a repair corrects"
    for kind, where in outcome.broken:
        if kind in UNPROMISED:
            continue
        verdict, words = _OF[kind]
        found.setdefault(verdict, f"{where} {words}")
    return found


def named(state: State) -> str:
    """Return a state in words."""
    return (
        f"cut at {state.at_ns / 1e9:.4f} s, {len(state.kept)} of {state.pending} pending blocks"
        f" kept ({state.how})"
    )
