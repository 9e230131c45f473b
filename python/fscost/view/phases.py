"""Device bytes written in each phase: a row for each profile."""

from collections.abc import Sequence

from fscost.results import TOTAL
from fscost.stats import Row
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import NOTHING, Grid, plain
from fscost.view.units import human_bytes

_LATE = {"settle_write_bytes": "after commands", "unmount_write_bytes": "at unmount"}


def phases(rows: Sequence[Row], profiles: Sequence[str]) -> Grid:
    """Phases in brackets are not in the total; the columns after it are parts of it, which fall
    elsewhere on a file system that stays mounted."""
    found = {(row.phase, row.profile): row for row in rows if row.metric == WRITTEN}
    measured = {phase for (phase, _), row in found.items() if row.measured}
    # Totals come after the phases, and a phase that only some profiles have keeps its place.
    names = [
        *dict.fromkeys(row.phase for row in rows if row.metric == WRITTEN and row.phase != TOTAL),
        *((TOTAL,) if len(measured - {TOTAL}) > 1 else ()),
    ]
    header = [
        "profile",
        *(plain(name) if name in measured else f"({plain(name)})" for name in names),
    ]
    lines = [
        [plain(profile), *(_size(found.get((name, profile))) for name in names)]
        for profile in profiles
    ]
    late = {
        (row.metric, row.profile): row for row in rows if row.phase == TOTAL and row.metric in _LATE
    }
    for metric, label in _LATE.items():
        sizes = [late.get((metric, profile)) for profile in profiles]
        if any(row is not None and row.median for row in sizes):
            header.append(label)
            for line, row in zip(lines, sizes, strict=True):
                line.append(_size(row))
    return Grid(
        "Device bytes written, by phase; those in brackets are not in the total", header, lines
    )


def _size(row: Row | None) -> str:
    return NOTHING if row is None else human_bytes(row.median)
