"""Verdict on a profile, from the outcomes of its states."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from fscost.crash.explore import Exploration, Outcome
from fscost.crash.promises import LOST, STALE, TORN

_WORDS = {
    LOST: "is not what was promised",
    STALE: "holds bytes of another file",
    TORN: "is neither the old nor the new version",
}


class Verdict(StrEnum):
    """The worst that was seen. `SAFE`: no broken promise in the states that were examined."""

    SAFE = "SAFE"
    NEEDS_REPAIR = "NEEDS-REPAIR"
    EXPOSES_STALE = "EXPOSES-STALE"
    LOSES_ACKED = "LOSES-ACKED"
    CORRUPTS = "CORRUPTS"


@dataclass(frozen=True)
class Judged:
    """A verdict, the number of states with each fault, and the first state of the worst one."""

    verdict: Verdict
    counts: dict[str, int]
    example: str


def judged(found: Exploration) -> Judged:
    """Judge a profile by all its states."""
    counts: Counter[Verdict] = Counter()
    examples: dict[Verdict, str] = {}
    for outcome in found.outcomes:
        for verdict, words in _faults(outcome).items():
            counts[verdict] += 1
            examples.setdefault(verdict, f"{_named(outcome)}: {words}")
    worst = max(counts, key=list(Verdict).index, default=Verdict.SAFE)
    return Judged(worst, {each.value: counts[each] for each in counts}, examples.get(worst, ""))


def _faults(outcome: Outcome) -> dict[Verdict, str]:
    found = {}
    if not outcome.mounts:
        found[Verdict.CORRUPTS] = "cannot be mounted, even after a repair"
    elif not outcome.is_clean:
        found[Verdict.CORRUPTS] = "has errors after recovery that no repair corrects"
    elif outcome.needs_repair:
        found[Verdict.NEEDS_REPAIR] = "has errors after recovery, which a repair corrects"
    for kind, where in outcome.broken:
        verdict = Verdict.EXPOSES_STALE if kind == STALE else Verdict.LOSES_ACKED
        found.setdefault(verdict, f"{where} {_WORDS[kind]}")
    return found


def _named(outcome: Outcome) -> str:
    state = outcome.state
    return (
        f"cut at {state.at_ns / 1e9:.4f} s, {len(state.kept)} of {state.pending} pending blocks"
        f" kept ({state.how})"
    )
