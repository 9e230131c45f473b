"""Choices that no other choice improves in both of two metrics."""

from collections.abc import Mapping

from fscost.stats.interval import interval
from fscost.stats.ratio import Verdict, ratio

Values = Mapping[str, Mapping[int, float]]
"""Values by profile and repetition; lower is better."""


def pareto(first: Values, second: Values) -> list[str]:
    """Return the profiles that no other one improves on, the lowest in `first` first. One profile
    improves on another if neither of its medians is larger, and at least one is a difference by
    `ratio`."""
    metrics = (first, second)
    names = [name for name in first if name in second]
    medians = {name: [_median(found[name]) for found in metrics] for name in names}

    def improves(one: str, other: str) -> bool:
        if any(a > b for a, b in zip(medians[one], medians[other], strict=True)):
            return False
        return any(ratio(found[one], found[other]).verdict is Verdict.LOWER for found in metrics)

    best = [name for name in names if not any(improves(other, name) for other in names)]
    return sorted(best, key=lambda name: medians[name])


def _median(values: Mapping[int, float]) -> float:
    return interval(list(values.values())).median
