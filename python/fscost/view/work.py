"""Comparison of the work that profiles or runs did: a command that runs for a fixed time does as
much as each file system lets it."""

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
    return ends if differs(ends.least.median, ends.most.median) else None


def differs(least: float, most: float) -> bool:
    """Check that bytes of programs differ by more than the minimum size of a difference."""
    apart = most - least
    return bool(least) and apart >= _LEAST_BYTES and apart > stats.MINIMUM_SIZE * least


def _median(row: Row) -> float:
    return row.median


def compared_by(results: RunResults, rows: Sequence[Row], *, is_per: bool) -> str:
    """Return the metric that compares the bytes written. A built-in workload does a fixed number of
    operations, and `--per` states it for commands."""
    is_fixed = is_per or is_built_in(results)
    return WRITTEN if is_fixed or unequal(rows) is None else AMPLIFICATION


def is_built_in(results: RunResults) -> bool:
    """Check that the run's workload does a fixed number of operations."""
    request = results.manifest.request
    return not (request.get("command") or request.get("step"))
