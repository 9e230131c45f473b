"""Comparison of a profile with the baseline: the ratio, its interval, and whether it counts as a
difference."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fscost.stats.interval import CONFIDENCE, interval

MINIMUM_SIZE = 0.02


class Verdict(StrEnum):
    """Result of a comparison. `UNDEFINED`: there is no ratio; `Ratio.because` says why."""

    LOWER = "lower"
    HIGHER = "higher"
    NOT_SHOWN = "no difference shown"
    UNDEFINED = "undefined"


@dataclass(frozen=True)
class Ratio:
    """Median of the quotients of `n` pairs, and its interval."""

    n: int
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    because: str = ""


def ratio(
    values: Mapping[int, float],
    baseline: Mapping[int, float],
    minimum_size: float = MINIMUM_SIZE,
    confidence: float = CONFIDENCE,
) -> Ratio:
    """Divide `values` by `baseline`, both keyed by repetition. A repetition that is
    missing on either side forms no pair.

    A difference is reported only if the interval excludes 1 *and* the ratio is at least
    `minimum_size` away from 1: if byte counts are identical in all repetitions, the interval has no
    width, and one block more would count as a difference. One pair has no interval and shows no
    difference.
    """
    pairs = [
        (values[repetition], baseline[repetition])
        for repetition in sorted(values.keys() & baseline.keys())
    ]
    if not pairs:
        return Ratio(0, None, None, None, Verdict.UNDEFINED, "no repetition has both")
    zeros = sum(below <= 0 for _, below in pairs)
    if zeros:
        where = (
            "in every repetition"
            if zeros == len(pairs)
            else f"in {zeros} of {len(pairs)} repetitions"
        )
        same = " and so is this" if all(above == below for above, below in pairs) else ""
        return Ratio(
            len(pairs), None, None, None, Verdict.UNDEFINED, f"the baseline is zero {where}{same}"
        )
    found = interval([above / below for above, below in pairs], confidence)
    return Ratio(
        found.n,
        found.median,
        found.low,
        found.high,
        verdict(found.median, found.low, found.high, minimum_size),
    )


def verdict(
    ratio: float, low: float | None, high: float | None, minimum_size: float = MINIMUM_SIZE
) -> Verdict:
    """Report a difference only if both the interval and the minimum size show one."""
    if low is None or high is None or low <= 1 <= high or abs(ratio - 1) < minimum_size:
        return Verdict.NOT_SHOWN
    return Verdict.LOWER if ratio < 1 else Verdict.HIGHER
