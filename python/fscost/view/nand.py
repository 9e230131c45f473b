"""Wear of the device of `--ssd` beside the bytes written: the two may rank profiles differently."""

from collections.abc import Sequence

from fscost.results import TOTAL
from fscost.results.worn import NAND
from fscost.stats import MINIMUM_SIZE, Row
from fscost.view.breakdown import WRITTEN
from fscost.view.summary import Ranking
from fscost.view.units import human


def worn_less(rows: Sequence[Row], found: Ranking) -> str:
    """Return a sentence for a run whose profile with the fewest bytes does not wear the device
    least; otherwise an empty text."""
    worn = {row.profile: row for row in rows if row.phase == TOTAL and row.metric == NAND}
    first = worn.get(found.profiles[0]) if found.metric == WRITTEN and found.profiles else None
    if first is None:
        return ""
    least = min(worn.values(), key=lambda row: row.median)
    if least.median > first.median * (1 - MINIMUM_SIZE):
        return ""
    return (
        f" But {least.profile} wears the --ssd device least: {human(least.median, least.unit)} of"
        f" NAND, {human(first.median, first.unit)} under {first.profile}."
    )
