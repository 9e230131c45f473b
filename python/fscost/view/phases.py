"""Device bytes written in each phase, with a row for each profile."""

from collections.abc import Sequence

from fscost.results import TOTAL
from fscost.stats import Row
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import NOTHING, Grid
from fscost.view.units import human_bytes

_LATE = {
    "settle_write_bytes": "of which after commands",
    "unmount_write_bytes": "of which at unmount",
}
_TITLE = "Device bytes written, by phase"


def phases(rows: Sequence[Row], profiles: Sequence[str], *, is_wide: bool) -> Grid:
    """Build the table of phases. The columns after the total show parts of it that would be written
    at other times on a file system that stays mounted. Phases outside the total are in brackets,
    and shown only if `is_wide`."""
    found = {(row.phase, row.profile): row for row in rows if row.metric == WRITTEN}
    measured = {phase for (phase, _), row in found.items() if row.measured and phase != TOTAL}
    # Totals come after the phases; a phase that only some profiles have keeps its position.
    every = dict.fromkeys(row.phase for row in rows if row.metric == WRITTEN and row.phase != TOTAL)
    names = [name for name in every if is_wide or name in measured]
    header = ["profile", *(name if name in measured else f"({name})" for name in names)]
    columns = [[found.get((name, profile)) for profile in profiles] for name in names]
    if len(measured) > 1:
        header.append(TOTAL)
        columns.append([found.get((TOTAL, profile)) for profile in profiles])
    late = {(row.metric, row.profile): row for row in rows if row.phase == TOTAL}
    for metric, label in _LATE.items():
        sizes = [late.get((metric, profile)) for profile in profiles]
        if any(row is not None and row.median for row in sizes) and (is_wide or "unmount" in label):
            header.append(label)
            columns.append(sizes)
    lines = [
        [profile, *(_size(column[place]) for column in columns)]
        for place, profile in enumerate(profiles)
    ]
    brackets = "; those in brackets are not in the total" if is_wide else ""
    return Grid(f"{_TITLE}{brackets}", header, lines)


def _size(row: Row | None) -> str:
    return NOTHING if row is None else human_bytes(row.median)
