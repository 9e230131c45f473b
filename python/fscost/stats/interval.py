"""Median, interval and ratio of few repetitions.

**Method.** For n = 3 … 10 repetitions, every interval rests on an assumption. The distribution-free
interval for a median (order statistics) reaches 95 % only from n = 6, and the bootstrap covers far
too little at n = 3 … 5 (Hesterberg, *What Teachers Should Know About the Bootstrap*, The American
Statistician 69(4), 2015, §5). Bytes and times are positive and skewed to the right, and they vary
multiplicatively. We therefore compute Student's t interval of the *logarithms* (Student, *The
Probable Error of a Mean*, Biometrika 6(1), 1908) and transform it back with `exp`. For lognormal
samples it covers the population median with exactly the stated probability, at every n ≥ 2. A ratio
uses the logarithms of the paired quotients, one per repetition (the paired t interval), so factors
common to a repetition (its seed, the state of the machine) cancel. If a value is zero, plain values
replace the logarithms. The interval is widened to contain the sample median, which tables print
beside it.

**Limits.** A few repetitions cannot show a rare event (one commit in ten runs), and bimodal samples
are covered less well. Stopping when the interval is narrow costs some coverage: it falls from
95 % to 91 % in the worst case, with samples 3 % apart (`tests/stats/test_coverage.py` measures it).
Intervals are not corrected for multiple comparisons: of a hundred rows, about five miss the true
value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fscost.stats.student import two_sided

CONFIDENCE = 0.95
_LARGEST_EXPONENT = 700.0  # exp() of more overflows


@dataclass(frozen=True)
class Interval:
    """Median of `n` samples, and the interval for the population's median. One sample has no
    interval."""

    n: int
    median: float
    low: float | None
    high: float | None

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval's width divided by the median: 0.02 is "± 2 %". None without an
        interval, or if the median is zero."""
        if self.low is None or self.high is None:
            return None
        if self.low == self.high:
            return 0.0
        return (self.high - self.low) / 2 / abs(self.median) if self.median else None


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Compute the median of `values` and its interval. NumPy takes 20 times as long for a few, and
    a run has thousands of rows."""
    if len(values) == 0 or not all(map(math.isfinite, values)):
        raise ValueError(f"an interval needs finite values, at least one: {list(values)}")
    n, least, most, median = len(values), min(values), max(values), median_of(values)
    if n == 1:
        return Interval(1, median, None, None)
    if least == most:
        return Interval(n, median, median, median)
    if least > 0:
        low, high = (
            math.exp(max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, bound)))
            for bound in _student([math.log(value) for value in values], confidence)
        )
    else:
        low, high = _student(values, confidence)
        if least == 0:
            low = max(low, 0.0)
    return Interval(n, median, min(low, median), max(high, median))


def median_of(values: Sequence[float]) -> float:
    """Return the median of finite values."""
    ordered, half = sorted(values), len(values) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def spread(values: Sequence[float]) -> float | None:
    """(largest − smallest) ÷ median: the spread of single repetitions. None for one sample or a
    median of zero."""
    median = median_of(values)
    if len(values) < 2 or median == 0:
        return None
    return (max(values) - min(values)) / abs(median)


def _student(samples: Sequence[float], confidence: float) -> tuple[float, float]:
    n = len(samples)
    mean = math.fsum(samples) / n
    variance = math.fsum((sample - mean) ** 2 for sample in samples) / (n - 1)
    half = two_sided(n - 1, confidence) * math.sqrt(variance / n)
    return mean - half, mean + half
