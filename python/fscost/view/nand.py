"""Wear of the device of `--ssd` beside the bytes written: the two may rank profiles differently."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fscost.results import TOTAL
from fscost.results.worn import NAND
from fscost.results.worn import RUNS as LIFE
from fscost.stats import MINIMUM_SIZE, Row
from fscost.view.breakdown import WRITTEN
from fscost.view.summary import Ranking
from fscost.view.units import human


def worn_less(rows: Sequence[Row], found: Ranking) -> str:
    """Return a sentence about the life of the device: under which profile it lasts longest, and
    how much longer than under the one with the fewest bytes, or, if they are the same, under the
    baseline. Without lives, tell if another profile wears the device less. Ratios, because years
    depend on the speed of the workload."""
    if found.metric != WRITTEN or not found.profiles:
        return ""
    first = found.profiles[0]
    lives = _totals(rows, LIFE)
    if first not in lives:
        return _least_worn(_totals(rows, NAND), first)
    longest = max(lives.values(), key=lambda row: row.median)
    is_first = longest.median < lives[first].median * (1 + MINIMUM_SIZE)
    best, other = (first, found.baseline) if is_first else (longest.profile, first)
    if other not in lives or not lives[other].median:
        return ""
    factor = lives[best].median / lives[other].median
    if factor < 1 + MINIMUM_SIZE:
        return ""
    lead, also = ("", " also") if is_first else (" But", "")
    times = f"{factor:.2g}" if factor < 100 else f"{factor:,.0f}"
    under = f"{lead} {'Under' if is_first else 'under'} {best}"
    return f"{under}, the --ssd device{also} lasts longest: {times} times as long as under {other}."


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
