"""Comparison of the work that the profiles did: a command that runs for a fixed time does as much
as each file system lets it."""

from collections.abc import Sequence
from dataclasses import dataclass

from fscost import stats
from fscost.results import TOTAL, RunResults
from fscost.stats import Row
from fscost.view.breakdown import WRITTEN
from fscost.view.units import human_bytes

BY_PROGRAMS = "program_write_bytes"
AMPLIFICATION = "write_amplification"
_LEAST_BYTES = 4096
"""Smallest difference worth reporting: messages of commands, such as times, differ by less."""


@dataclass(frozen=True)
class Unequal:
    """The profiles whose programs wrote the least and the most."""

    least: Row
    most: Row

    def caution(self, *, is_per_byte: bool) -> str:
        """Say that the work differs, and what the ranking is based on."""
        sizes = " to ".join(
            f"{human_bytes(row.median)} under {row.profile}" for row in (self.least, self.most)
        )
        what = f"The programs wrote different amounts ({sizes}), so the profiles may not have done"
        if is_per_byte:
            return (
                f"{what} the same work. They are compared by amplification: device bytes ÷ bytes"
                " that the programs wrote. For the bytes alone, use a command that does a fixed"
                f" amount of work, --per, or `fscost show RUN --metric {WRITTEN}`."
            )
        return f"{what} the same work, and more bytes may be more work."


def unequal(rows: Sequence[Row]) -> Unequal | None:
    """Return the extremes if the programs' bytes differ by more than the minimum size of a
    difference."""
    found = [row for row in rows if row.phase == TOTAL and row.metric == BY_PROGRAMS]
    if not found:
        return None
    ends = Unequal(min(found, key=_median), max(found, key=_median))
    apart = ends.most.median - ends.least.median
    is_small = apart < _LEAST_BYTES or apart <= stats.MINIMUM_SIZE * ends.least.median
    return None if is_small or not ends.least.median else ends


def _median(row: Row) -> float:
    return row.median


def compared_by(results: RunResults, rows: Sequence[Row], *, is_per: bool) -> str:
    """Return the metric that compares the bytes written. A built-in workload does a fixed number of
    operations, and `--per` states it for commands."""
    request = results.manifest.request
    is_fixed = is_per or not (request.get("command") or request.get("step"))
    return WRITTEN if is_fixed or unequal(rows) is None else AMPLIFICATION
