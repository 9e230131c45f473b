"""From samples to verdicts. Nothing here knows what was expected: bounds come from the study's
data, values from the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fscost.stats import Interval
from fscost.study.measure import Measured, Numbers, published_value
from fscost.study.model import Claim, Criterion, Published

_ONE = "one repetition has no interval"
_WIDE = "its interval reaches over a bound; more repetitions may make it narrow enough"
MORE_MAY_DECIDE = frozenset((_ONE, _WIDE))
"""Reasons of open criteria that go away with more repetitions."""
_MIB = 1 << 20
_FEWEST = 2
"""Repetitions that an interval takes."""


class Outcome(StrEnum):
    """What the samples say about one criterion."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "open"
    """The interval reaches over a bound, or there is none (one repetition decides nothing), or what
    was measured cannot tell."""


class Verdict(StrEnum):
    """What the samples say about a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced here"
    CANNOT_BE_TOLD = "cannot be told"


RULES = (
    "A criterion holds when the whole 95 % interval of its value lies within the bounds, fails when the whole interval lies outside, and is open otherwise.",
    "A claim is reproduced when all of its criteria hold, not reproduced here when all fail, partly when some hold and some fail; else it cannot be told.",
)


@dataclass(frozen=True)
class JudgedCriterion:
    """`published`: the same formula over the source's figures."""

    criterion: Criterion
    published: float | None
    measured: Measured
    outcome: Outcome


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with what decided it."""

    claim: Claim
    verdict: Verdict
    criteria: tuple[JudgedCriterion, ...]


def judge(claim: Claim, numbers: Numbers, published: Published) -> JudgedClaim:
    """The verdict on a claim."""
    judged = []
    for criterion in claim.criteria:
        formula = criterion.formula
        measured = (
            Measured(None, criterion.because)
            if formula is None
            else _with_precondition(criterion, numbers, numbers.measured(formula))
        )
        found = Outcome.OPEN if measured.because else outcome(criterion, measured.interval)
        measured = (
            measured
            if measured.because or found is not Outcome.OPEN
            else replace(measured, because=_why_open(measured))
        )
        judged.append(
            JudgedCriterion(criterion, published_value(formula, published), measured, found)
        )
    return JudgedClaim(claim, verdict([entry.outcome for entry in judged]), tuple(judged))


def _with_precondition(criterion: Criterion, numbers: Numbers, measured: Measured) -> Measured:
    """What was measured, with the reason why it decides nothing where this run is too small to show
    the claim."""
    needed = criterion.precondition
    if needed is None or measured.because:
        return measured
    found = numbers.measured(needed.formula)
    if found.because or found.interval is None:
        return replace(measured, because=found.because)
    if found.interval.median >= needed.at_least and (
        found.interval.low is None or found.interval.low >= needed.at_least
    ):
        return measured
    here, least = (_text(value, needed.unit) for value in (found.interval.median, needed.at_least))
    return replace(measured, because=f"{needed.because} ({here} here, {least} needed)")


def _text(value: float, unit: str) -> str:
    return f"{value / _MIB:.4g} MiB" if unit == "bytes" else f"{value:.4g} {unit}"


def is_too_small(judged: "JudgedCriterion") -> bool:
    """Whether a larger run may decide it."""
    needed = judged.criterion.precondition
    return needed is not None and (judged.measured.because or "").startswith(needed.because)


def _why_open(measured: Measured) -> str:
    """Of a value that more repetitions may decide."""
    if measured.interval is not None and measured.interval.n < _FEWEST:
        return _ONE
    return _WIDE


def outcome(criterion: Criterion, interval: Interval | None) -> Outcome:
    """Decided only when the whole interval is on one side."""
    if interval is None or interval.low is None or interval.high is None:
        return Outcome.OPEN
    least = float("-inf") if criterion.at_least is None else criterion.at_least
    most = float("inf") if criterion.at_most is None else criterion.at_most
    if least <= interval.low and interval.high <= most:
        return Outcome.HOLDS
    return Outcome.FAILS if interval.high < least or interval.low > most else Outcome.OPEN


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Of all criteria together."""
    found = set(outcomes)
    if {Outcome.HOLDS, Outcome.FAILS} <= found:
        return Verdict.PARTLY
    if found == {Outcome.HOLDS}:
        return Verdict.REPRODUCED
    return Verdict.NOT_REPRODUCED if found == {Outcome.FAILS} else Verdict.CANNOT_BE_TOLD
