"""Quantiles of Student's t distribution, without SciPy: it would be 140 MB for this one function.

Below 1,000 degrees of freedom, the exact finite series (Abramowitz and Stegun, *Handbook of
Mathematical Functions*, 26.7.3 and 26.7.4), inverted by bisection; from there, the expansion about
the normal quantile (26.7.5), whose error is below 1e-14 there.
"""

import math
from functools import cache

_EXPANDED_FROM = 1000
_STEPS = 200
"""Enough halvings for any double."""


@cache
def two_sided(degrees: int, confidence: float) -> float:
    """Return the t for which |T| ≤ t has probability `confidence`."""
    if degrees >= _EXPANDED_FROM:
        from statistics import NormalDist  # imports much

        return _expanded(degrees, NormalDist().inv_cdf((1 + confidence) / 2))
    # In terms of the angle atan(t ÷ √n), which is bounded.
    low, high = 0.0, math.pi / 2
    for _ in range(_STEPS):
        angle = (low + high) / 2
        if not low < angle < high:
            break
        low, high = (angle, high) if _probability(degrees, angle) < confidence else (low, angle)
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def _probability(degrees: int, angle: float) -> float:
    """Probability of |T| ≤ √n · tan(angle)."""
    square = math.cos(angle) ** 2
    is_odd = degrees % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if degrees > 1 else 0.0
    for number in range(2 + is_odd, degrees - 1, 2):
        term *= square * (number - 1) / number
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if is_odd else total


def _expanded(degrees: int, x: float) -> float:
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return math.fsum([x, *(term / degrees**power for power, term in enumerate(terms, 1))])
