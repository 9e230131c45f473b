"""Median, interval and ratio of few repetitions.

**Method.** For n = 3 … 10 repetitions no interval is free of an assumption: the distribution-free
one for a median (order statistics) reaches
95 % only from n = 6, and the bootstrap covers far too little at n = 3 … 5 (Hesterberg, *What
Teachers Should Know About the Bootstrap*, The
American Statistician 69(4), 2015, §5). Bytes and times are positive, skewed to the right and vary
by factors, so we take Student's t
interval of the *logarithms* (Student, *The Probable Error of a Mean*, Biometrika 6(1), 1908) and go
back by `exp`: for lognormal samples it covers the population
median with exactly the stated probability, at every n ≥ 2. A ratio takes the logarithms of the
paired quotients, one for each repetition, so what a
repetition has in common (its seed, the machine's mood) cancels: the paired t interval. Where a
value is zero, the plain values take the place of the logarithms.
The interval is widened to contain the sample median, which is what the tables print beside it.

**Limits.** A few repetitions cannot show a rare event (one commit in ten runs): samples with two
humps are covered less well. Stopping when the interval
is narrow costs some coverage: of 95 %, 91 % remain where it costs most, at samples 3 % apart
(`tests/stats/test_coverage.py` measures it). Each interval stands alone: of a hundred rows, some
five miss their truth.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
_LARGEST_EXPONENT = 700.0  # exp() of more is no float


@dataclass(frozen=True)
class Interval:
    """The median of `n` samples, and where the population's median lies. One sample has no
    interval."""

    n: int
    median: float
    low: float | None
    high: float | None

    @property
    def relative_half_width(self) -> float | None:
        """Half of the interval over the median: 0.02 is "± 2 %". None without an interval, or
        around a median of zero."""
        if self.low is None or self.high is None:
            return None
        if self.low == self.high:
            return 0.0
        return (self.high - self.low) / 2 / abs(self.median) if self.median else None


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median of `values` with its interval."""
    samples = np.asarray(values, dtype=np.float64)
    if samples.size == 0 or not np.isfinite(samples).all():
        raise ValueError(f"an interval needs finite values, at least one: {list(values)}")
    median = float(np.median(samples))
    if samples.size == 1:
        return Interval(1, median, None, None)
    if samples.min() == samples.max():
        return Interval(samples.size, median, median, median)
    if samples.min() > 0:
        low, high = (
            math.exp(max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, bound)))
            for bound in _student(np.log(samples), confidence)
        )
    else:
        low, high = _student(samples, confidence)
        if samples.min() == 0:
            low = max(low, 0.0)
    return Interval(samples.size, median, min(low, median), max(high, median))


def spread(values: Sequence[float]) -> float | None:
    """(largest − smallest) ÷ median: how far single repetitions lie apart. None for one sample or a
    median of zero."""
    median = float(np.median(values))
    if len(values) < 2 or median == 0:
        return None
    return (max(values) - min(values)) / abs(median)


def _student(
    samples: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", confidence: float
) -> tuple[float, float]:
    # Importing it takes a third of a second, which neither --help nor a single sample needs.
    from scipy.special import stdtrit

    n = samples.size
    half = float(stdtrit(n - 1, (1 + confidence) / 2) * samples.std(ddof=1) / math.sqrt(n))
    mean = float(samples.mean())
    return mean - half, mean + half
