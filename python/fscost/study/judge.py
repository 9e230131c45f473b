"""Judgement of claims by samples. This module does not know the expected result: bounds come from
the study's data, values from the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fscost import stats
from fscost.stats import Interval
from fscost.study.measure import Measured, Numbers, published_value
from fscost.study.model import Claim, Criterion, Published

_ONE = "a single repetition has no interval"
_WIDE = "its interval includes a bound; more repetitions may make it narrow enough"
MORE_MAY_DECIDE = frozenset((_ONE, _WIDE))
"""Reasons for open criteria that more repetitions may remove."""
_MIB = 1 << 20
_FEWEST = 2
"""Minimum repetitions for an interval."""


class Outcome(StrEnum):
    """Judgement of one criterion by the samples."""

    HOLDS = "holds"
    FAILS = "fails"
    REVERSED = "reversed"
    """The criterion fails, and the effect has the opposite sign."""
    OPEN = "open"
    """The interval includes a bound, or there is no interval (one repetition decides nothing), or
    the measured value is no evidence."""


class Verdict(StrEnum):
    """Judgement of a claim by the samples."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced here"
    REVERSED = "reversed"
    INCONCLUSIVE = "inconclusive"


RULES = (
    (
        "A criterion holds when the whole 95 % interval of its value lies within the bounds, fails"
        " when the whole interval lies outside, and is open otherwise."
    ),
    (
        "A failed criterion is reversed when the whole interval shows the opposite effect, of at"
        " least 2 %."
    ),
    (
        "A claim is reproduced when all of its criteria hold, reversed when all are reversed, not"
        " reproduced here when all fail or are reversed, and partly reproduced when some hold and"
        " all others fail or are reversed. Otherwise, it is inconclusive."
    ),
)


@dataclass(frozen=True)
class JudgedCriterion:
    """Criterion with its outcome. `published`: the value of the same formula for the source's
    figures."""

    criterion: Criterion
    published: float | None
    measured: Measured
    outcome: Outcome


@dataclass(frozen=True)
class JudgedClaim:
    """Claim with its verdict and the criteria that decided it."""

    claim: Claim
    verdict: Verdict
    criteria: tuple[JudgedCriterion, ...]


def judge(claim: Claim, numbers: Numbers, published: Published) -> JudgedClaim:
    """Judge a claim."""
    judged = []
    for criterion in claim.criteria:
        formula = criterion.formula
        measured = (
            Measured(None, criterion.because)
            if formula is None
            else _with_precondition(criterion, numbers, numbers.measured(formula))
        )
        found = Outcome.OPEN if measured.because else outcome(criterion, measured.interval)
        if found is Outcome.OPEN and not measured.because:
            measured = replace(measured, because=_why_open(measured))
        published_here = published_value(formula, published)
        judged.append(JudgedCriterion(criterion, published_here, measured, found))
    return JudgedClaim(claim, verdict([entry.outcome for entry in judged]), tuple(judged))


def _with_precondition(criterion: Criterion, numbers: Numbers, measured: Measured) -> Measured:
    """Add the reason why a value decides nothing, if this run is too small to show the claim."""
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
    if unit == "bytes":
        return f"{value / _MIB:.4g} MiB"
    return f"{value:.4g}" if unit == "ratio" else f"{value:.4g} {unit}"


def is_too_small(judged: "JudgedCriterion") -> bool:
    """Return True if a larger run may decide the criterion."""
    needed = judged.criterion.precondition
    return needed is not None and (judged.measured.because or "").startswith(needed.because)


def _why_open(measured: Measured) -> str:
    """Return the reason for an open criterion that more repetitions may decide."""
    is_single = measured.interval is not None and measured.interval.n < _FEWEST
    return _ONE if is_single else _WIDE


def outcome(criterion: Criterion, interval: Interval | None) -> Outcome:
    """Judge an interval. The outcome is decided only if the whole interval is on one side of a
    bound."""
    if interval is None or interval.low is None or interval.high is None:
        return Outcome.OPEN
    least = float("-inf") if criterion.at_least is None else criterion.at_least
    most = float("inf") if criterion.at_most is None else criterion.at_most
    if least <= interval.low and interval.high <= most:
        return Outcome.HOLDS
    if least <= interval.high and interval.low <= most:
        return Outcome.OPEN
    return Outcome.REVERSED if _is_reversed(criterion, interval) else Outcome.FAILS


def _is_reversed(criterion: Criterion, interval: Interval) -> bool:
    """True if the claimed effect is on one side of `neutral`, and the whole interval on the
    other."""
    neutral, low, high = criterion.neutral, interval.low, interval.high
    if neutral is None or low is None or high is None:
        return False
    if criterion.at_least is not None and criterion.at_least >= neutral:
        return high <= neutral - stats.MINIMUM_SIZE
    return low >= neutral + stats.MINIMUM_SIZE


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Return the verdict of all criteria together."""
    found = set(outcomes)
    failed = {Outcome.FAILS, Outcome.REVERSED}
    if Outcome.HOLDS in found and found & failed:
        return Verdict.PARTLY
    if found == {Outcome.HOLDS}:
        return Verdict.REPRODUCED
    if found == {Outcome.REVERSED}:
        return Verdict.REVERSED
    return Verdict.NOT_REPRODUCED if found and found <= failed else Verdict.INCONCLUSIVE
