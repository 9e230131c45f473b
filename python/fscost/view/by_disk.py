"""Traffic of each disk of a run: one line for each profile and disk."""

from collections.abc import Sequence

from fscost.results import METRICS, TOTAL, written
from fscost.stats import Row
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import NOTHING, Grid
from fscost.view.units import human

_ALWAYS = (WRITTEN, "device_read_bytes", "device_flushes")
_IF_THERE = (
    written.FILE_DATA,
    written.JOURNAL,
    written.METADATA,
    written.UNKNOWN,
    written.ATIME,
    *map(written.metric_of, ("parity", "md_superblock", "md_bitmap")),
)
_LABELS = {
    WRITTEN: "written",
    "device_read_bytes": "read",
    "device_flushes": "flushes",
    written.ATIME: "of which atime",
}


def by_disk(rows: Sequence[Row], profiles: Sequence[str]) -> Grid:
    """Return the medians of the totals of all measured phases. There are no rows if no profile has
    rows of its disks."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row.phase == TOTAL and row.disk and row.profile in profiles:
            values.setdefault((row.profile, row.disk), {})[row.metric] = row.median
    shown = [
        *_ALWAYS,
        *(metric for metric in _IF_THERE if any(found.get(metric) for found in values.values())),
    ]
    lines = [
        [profile, disk, *(_value(found, metric) for metric in shown)]
        for profile in profiles
        for (of, disk), found in values.items()
        if of == profile
    ]
    return Grid(
        "By disk, all measured phases", ("profile", "disk", *map(_label, shown)), lines, left=(0, 1)
    )


def _value(found: dict[str, float], metric: str) -> str:
    return NOTHING if metric not in found else human(found[metric], METRICS[metric].unit)


def _label(metric: str) -> str:
    return _LABELS.get(metric, metric.removesuffix("_write_bytes").replace("_", " "))
