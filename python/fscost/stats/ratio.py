"""A profile against the baseline: the ratio, its interval, and whether the difference is called
one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fscost.stats.interval import CONFIDENCE, interval

MINIMUM_SIZE = 0.02


class Verdict(StrEnum):
    """What the samples show. `UNDEFINED`: there is no ratio; `Ratio.because` says why."""

    LOWER = "lower"
    HIGHER = "higher"
    NOT_SHOWN = "no difference shown"
    UNDEFINED = "undefined"


@dataclass(frozen=True)
class Ratio:
    """Median of the quotients of `n` pairs, with its interval."""

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
    """`values` over `baseline`, both by repetition; a repetition that either lacks makes no pair.

    A difference is called only when the interval excludes 1 *and* the ratio is at least
    `minimum_size` away from it: with identical byte counts the interval
    has no width, and a block more is no finding. One pair has no interval and shows no difference.
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
    """Called only when the interval and the minimum size both say so."""
    if low is None or high is None or low <= 1 <= high or abs(ratio - 1) < minimum_size:
        return Verdict.NOT_SHOWN
    return Verdict.LOWER if ratio < 1 else Verdict.HIGHER
