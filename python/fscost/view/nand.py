"""Wear of the device of `--ssd` beside the bytes written: the two may rank profiles differently."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fscost import stats
from fscost.results import TOTAL, RunResults
from fscost.results.worn import NAND
from fscost.results.worn import RUNS as LIFE
from fscost.stats import MINIMUM_SIZE, Row, Verdict
from fscost.view.breakdown import WRITTEN
from fscost.view.summary import Ranking, percent
from fscost.view.units import human

_TIMES = 1.2
"""Smallest factor that is not told in percent: two digits of a smaller one would hide it."""


def worn_less(results: RunResults, rows: Sequence[Row], found: Ranking) -> str:
    """Return a sentence about the life of the device: under which profile it lasts longest, and
    how much longer than under the one with the fewest bytes, or, if they are the same, under the
    baseline. Of several that tie for the fewest bytes, the one with the longest life counts. A
    difference between repetitions that may be chance is none. Without lives, tell if
    another profile wears the device less. Ratios, because years depend on the speed of the
    workload."""
    if found.metric != WRITTEN or not found.profiles:
        return ""
    first = found.profiles[0]
    lives = _totals(rows, LIFE)
    if first not in lives:
        return _least_worn(_totals(rows, NAND), first)
    values = stats.by_repetition(results.samples, LIFE)

    def is_longer(one: str, other: str) -> bool:
        if lives[one].median < lives[other].median * (1 + MINIMUM_SIZE):
            return False
        ratio = stats.ratio(values.get(one, {}), values.get(other, {}))
        return ratio.n < 2 or ratio.verdict is Verdict.HIGHER

    # Single repetitions show no difference, which is no tie.
    tied = [each for each in found.ties if each in lives and found.rows[0].n > 1]
    first = max(tied, key=lambda name: lives[name].median, default=first)
    shortest = min(tied, key=lambda name: lives[name].median, default=first)
    longest = max(lives.values(), key=lambda row: row.median).profile
    if found.baseline in lives and not is_longer(longest, found.baseline):
        longest = found.baseline
    is_first = not is_longer(longest, first)
    best, other = (first, found.baseline) if is_first else (longest, first)
    if other not in lives or not lives[other].median or not is_longer(best, other):
        if not lives[shortest].median or not is_longer(first, shortest):
            return ""
        much = _longer(lives[first].median / lives[shortest].median)
        return f" Of these, the --ssd device lasts longer under {first}: {much} under {shortest}."
    lead, also = ("", " also") if is_first else (" But", "")
    under = f"{lead} {'Under' if is_first else 'under'} {best}"
    much = _longer(lives[best].median / lives[other].median)
    return f"{under}, the --ssd device{also} lasts longest: {much} under {other}."


def _longer(factor: float) -> str:
    """Spell a factor above 1: 4.5 % longer than, 1.4 times as long as."""
    if factor < _TIMES:
        return f"{percent(factor)} longer than"
    return f"{factor:.2g} times as long as" if factor < 100 else f"{factor:,.0f} times as long as"


def longest_first(rows: Sequence[Row], found: Ranking) -> Ranking:
    """Order the profiles by the life of the device, which the answer is about, if each has one."""
    lives = _totals(rows, LIFE)
    if found.metric != WRITTEN or not all(name in lives for name in found.profiles):
        return found
    return replace(found, rows=sorted(found.rows, key=lambda row: -lives[row.profile].median))


def _totals(rows: Sequence[Row], metric: str) -> dict[str, Row]:
    return {row.profile: row for row in rows if row.phase == TOTAL and row.metric == metric}


def _least_worn(worn: Mapping[str, Row], profile: str) -> str:
    first = worn.get(profile)
    if first is None:
        return ""
    least = min(worn.values(), key=lambda row: row.median)
    if least.median > first.median * (1 - MINIMUM_SIZE):
        return ""
    return (
        f" But {least.profile} wears the --ssd device least: {human(least.median, least.unit)} of"
        f" NAND, {human(first.median, first.unit)} under {first.profile}."
    )
