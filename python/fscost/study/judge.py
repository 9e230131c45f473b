"""Judgement of claims by samples. This module does not know the expected result: bounds come from
the study's data, values from the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fscost import stats
from fscost.stats import Interval
from fscost.study.measure import Measured, Numbers, published_value
from fscost.study.model import Claim, Criterion, Published
from fscost.study.unknown import without

_ONE = "a single repetition has no interval"
_WIDE = "its interval includes a bound; more repetitions may make it narrow enough"
MORE_MAY_DECIDE = frozenset((_ONE, _WIDE))
"""Reasons for open criteria that more repetitions may remove."""
_UNSURE = "the modelled times depend on what the program waited for"
MODELLED, LEAST = "modelled_s", "modelled_least_s"
"""Metrics of the time on device models: with requests in the recording's order, and its lower
bound."""
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
    NOT_TESTABLE = "cannot be tested"
    """No run of fscost could measure it."""


class Verdict(StrEnum):
    """Judgement of a claim by the samples."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced here"
    REVERSED = "reversed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "cannot be tested"


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
        "If a profile was not measured, the value is only known to lie in a range: the missing"
        " number may be anything above zero. If the whole range holds or fails, so does the"
        " criterion."
    ),
    (
        "A claim is reproduced when all of its criteria hold, reversed when all are reversed, not"
        " reproduced here when all fail or are reversed, and partly reproduced when at least one"
        " holds and at least one fails or is reversed, whatever the open ones would show."
        " Otherwise, it is inconclusive."
    ),
    (
        "A claim cannot be tested if no run of fscost could measure any of its criteria; the reason"
        " is given with it. A claim that a run could decide stays inconclusive."
    ),
    (
        "A criterion of modelled times must have the same outcome for the times of requests in"
        " their recorded order and for the lower bounds of these times; otherwise, it is open."
    ),
    (
        "An inconclusive claim may have a second verdict, among those measured: the same rules and"
        " bounds, without the profiles that were not measured."
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
class Among:
    """Second verdict of an inconclusive claim: without the profiles `missing`."""

    missing: tuple[str, ...]
    verdict: Verdict
    criteria: tuple[JudgedCriterion, ...]


@dataclass(frozen=True)
class JudgedClaim:
    """Claim with its verdict and the criteria that decided it."""

    claim: Claim
    verdict: Verdict
    criteria: tuple[JudgedCriterion, ...]
    among: Among | None = None


def judge(claim: Claim, numbers: Numbers, published: Published) -> JudgedClaim:
    """Judge a claim."""
    judged = tuple(_judged(criterion, numbers, published) for criterion in claim.criteria)
    found = verdict([entry.outcome for entry in judged])
    among = _among(judged, numbers, published) if found is Verdict.INCONCLUSIVE else None
    return JudgedClaim(claim, found, judged, among)


def _judged(criterion: Criterion, numbers: Numbers, published: Published) -> JudgedCriterion:
    """Judge a criterion. If it compares modelled times, their lower bounds must agree."""
    entry = _of_one_metric(criterion, numbers, published)
    formula = criterion.formula
    if formula is None or entry.outcome is Outcome.OPEN:
        return entry
    if formula.metric != MODELLED or all(ref.metric != MODELLED for ref in formula.references):
        return entry
    bounds = replace(criterion, formula=replace(formula, metric=LEAST))
    other = _of_one_metric(bounds, numbers, published)
    is_same = (entry.outcome is Outcome.HOLDS) is (other.outcome is Outcome.HOLDS)
    if is_same and other.outcome is not Outcome.OPEN:
        return entry
    because = f"{_UNSURE}: {entry.outcome} in order, {other.outcome} by the lower bounds"
    return replace(entry, outcome=Outcome.OPEN, measured=replace(entry.measured, because=because))


def _of_one_metric(criterion: Criterion, numbers: Numbers, published: Published) -> JudgedCriterion:
    formula = criterion.formula
    if criterion.cannot:
        return JudgedCriterion(
            criterion, None, Measured(None, criterion.cannot), Outcome.NOT_TESTABLE
        )
    measured = Measured(None, criterion.because) if formula is None else numbers.measured(formula)
    found = Outcome.OPEN
    bounded = None if formula is None or not measured.because else numbers.bounded(formula)
    if bounded is not None:
        found = outcome(criterion, bounded.bounds)
        # Bounds that decide nothing say nothing.
        measured = measured if found is Outcome.OPEN else bounded
    measured = _with_precondition(criterion, numbers, measured)
    if measured.because:
        return JudgedCriterion(
            criterion, published_value(formula, published), measured, Outcome.OPEN
        )
    if bounded is None:
        found = outcome(criterion, measured.interval)
        if found is Outcome.OPEN:
            measured = replace(measured, because=_why_open(measured))
    return JudgedCriterion(criterion, published_value(formula, published), measured, found)


def _among(
    judged: Sequence[JudgedCriterion], numbers: Numbers, published: Published
) -> Among | None:
    """Judge a claim by the profiles that were measured; None if that decides nothing, or if no
    criterion compares a missing profile with others."""
    entries: list[JudgedCriterion] = []
    missing: set[str] = set()
    for whole in judged:
        formula = whole.criterion.formula
        lacking = (
            frozenset[str]()
            if formula is None
            else frozenset(ref.profile for ref in formula.references) - numbers.profiles
        )
        fewer = without(formula, lacking) if formula is not None and lacking else None
        if fewer is None:
            entries.append(whole)
        else:
            missing |= lacking
            entries.append(_judged(replace(whole.criterion, formula=fewer), numbers, published))
    found = verdict([entry.outcome for entry in entries])
    if not missing or found is Verdict.INCONCLUSIVE:
        return None
    return Among(tuple(sorted(missing)), found, tuple(entries))


def _with_precondition(criterion: Criterion, numbers: Numbers, measured: Measured) -> Measured:
    """Add the reason why a value decides nothing, if this run is too small to show the claim."""
    needed = criterion.precondition
    if needed is None or measured.because:
        return measured
    found = numbers.measured(needed.formula)
    if found.because or found.interval is None:
        return replace(measured, because=found.because, bounds=None)
    median, low = found.interval.median, found.interval.low
    if median >= needed.at_least and (low is None or low >= needed.at_least):
        return measured
    here, least = (_text(value, needed.unit) for value in (median, needed.at_least))
    because = f"{needed.because} ({here} here, {least} needed)"
    if median >= needed.at_least:
        because = f"its repetitions vary too much to show that {here} is above the {least} needed"
    return replace(measured, because=because, bounds=None)


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
    """Return the verdict of all criteria together: the one that is left whatever the open criteria
    would show."""
    found = set(outcomes)
    failed = {Outcome.FAILS, Outcome.REVERSED}
    if found == {Outcome.NOT_TESTABLE}:
        return Verdict.NOT_TESTABLE
    if Outcome.HOLDS in found and found & failed:
        return Verdict.PARTLY
    if found == {Outcome.HOLDS}:
        return Verdict.REPRODUCED
    if found == {Outcome.REVERSED}:
        return Verdict.REVERSED
    return Verdict.NOT_REPRODUCED if found and found <= failed else Verdict.INCONCLUSIVE
