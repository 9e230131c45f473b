"""A run as Arrow tables, for charts, pages and CSV files."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fscost.results import TOTAL, written
from fscost.stats import Row
from fscost.view.breakdown import WRITTEN
from fscost.view.sweep import Sweep
from fscost.view.sweep import rows as effect_rows

SUMMARY = (
    WRITTEN,
    "nand_write_bytes",
    "lifetime_years",
    "wall_s",
    "cpu_s",
    "device_write_requests",
    "device_flushes",
    "fsync_latency_ns_p99",
    "space_taken_bytes",
    "write_amplification",
    "space_used_bytes",
    "fsync_latency_ns_p50",
    "fsync_latency_ns_max",
    "pause_s_p99",
    "pause_s_max",
)
"""Metrics of a page's first table and of its small charts, if the run has them: those that decide
come first, because a narrow window shows the first columns."""
_CAUSES = {metric: name for name, metric in written.BY_CAUSE.items()} | {written.MIXED: "mixed"}
_STRUCTURES = {metric: name for name, metric in written.BY_STRUCTURE.items()}


@dataclass(frozen=True)
class Table:
    """A table with a title; `units` gives the unit of each column's numbers (`view.units`)."""

    name: str
    title: str
    data: pa.Table
    units: Mapping[str, str]


def ranked(rows: Sequence[Row]) -> list[str]:
    """Return the profiles, the one that wrote the least first."""
    medians = {
        row.profile: row.median
        for row in rows
        if row.phase == TOTAL and row.metric == WRITTEN and not row.disk
    }
    names = dict.fromkeys(row.profile for row in rows)
    return sorted(names, key=lambda name: medians.get(name, math.inf))


def summary(rows: Sequence[Row], power_cut: Mapping[str, str]) -> Table:
    """Build a line for each profile: the median of each metric, bytes written with their ratio, and
    the verdict after power cuts, if there is one."""
    totals = {(row.profile, row.metric): row for row in rows if row.phase == TOTAL}
    shown = [metric for metric in SUMMARY if any(metric == found for _, found in totals)]
    profiles = list(dict.fromkeys(row.profile for row in rows))
    columns: dict[str, list[object]] = {"profile": [*profiles]}
    for metric in shown:
        found = [totals.get((profile, metric)) for profile in profiles]
        columns[metric] = [row and row.median for row in found]
        if metric == WRITTEN:
            columns["ratio"] = [row and row.ratio for row in found]
            columns["verdict"] = [row and row.verdict for row in found]
            if power_cut:
                columns["power_cut"] = [power_cut.get(profile) for profile in profiles]
    if WRITTEN in shown:
        found = [totals.get((profile, WRITTEN)) for profile in profiles]
        for name in ("ratio_low", "ratio_high", "n"):
            columns[name] = [None if row is None else getattr(row, name) for row in found]
    # An emulated guest's times are in virtual units.
    units = {metric: row.unit for (_, metric), row in totals.items() if metric in shown}
    units |= dict.fromkeys(("ratio", "ratio_low", "ratio_high"), "times")
    return Table("summary", "Totals of all measured phases", pa.table(columns), units)


def measures(rows: Sequence[Row]) -> Table:
    """Build a line for each profile and metric of `SUMMARY`, with its interval and ratio."""
    chosen = [row for row in rows if row.phase == TOTAL and row.metric in SUMMARY]
    chosen.sort(key=lambda row: SUMMARY.index(row.metric))
    names = ("metric", "profile", "unit", "n", "median", "low", "high", "spread")
    ratios = ("ratio", "ratio_low", "ratio_high", "verdict")
    data = {name: [getattr(row, name) for row in chosen] for name in (*names, *ratios)}
    units = dict.fromkeys(("median", "low", "high"), "unit")
    units |= dict.fromkeys(("ratio", "ratio_low", "ratio_high"), "times") | {"spread": "share"}
    title = "Each metric with its 95 % interval, and its ratio to the baseline"
    return Table("measures", title, _typed(data, ("metric", "profile", "unit", "verdict")), units)


def effects(found: Sequence[Sweep]) -> Table:
    """Build a line for each effect of a sweep, the largest first."""
    rows = [row for sweep in found for row in effect_rows(sweep)]
    data: dict[str, list[object]] = {
        "option": [" with ".join(row.levels) for row in rows],
        "against": [" with ".join(row.against) for row in rows],
        "metric": [row.metric for row in rows],
        "unit": ["times" if row.unit == "ratio" else row.unit for row in rows],
    }
    for name in ("effect", "low", "high"):
        data[name] = [getattr(row, name) for row in rows]
    data["verdict"] = [row.verdict.value for row in rows]
    texts = ("option", "against", "metric", "unit", "verdict")
    units = dict.fromkeys(("effect", "low", "high"), "unit")
    return Table("effects", "Effects of the options of the sweep", _typed(data, texts), units)


def phases(rows: Sequence[Row]) -> Table:
    """Build the table of bytes written in each phase; mkfs and mount are not in the totals."""
    found = [row for row in rows if row.metric == WRITTEN and row.phase != TOTAL]
    names = ("phase", "profile", "measured", "n", "median", "low", "high")
    data = {name: [getattr(row, name) for row in found] for name in names}
    data["write_bytes"] = data.pop("median")
    table = _typed(data, ("phase", "profile"))
    return Table(
        "phases",
        "Bytes written in each phase",
        table,
        dict.fromkeys(("write_bytes", "low", "high"), "bytes"),
    )


def causes(rows: Sequence[Row]) -> Table:
    """Build the table of bytes written for each cause; `mixed` for several at once."""
    return _parts(rows, _CAUSES, "cause", "Bytes written, by cause")


def structures(rows: Sequence[Row]) -> Table:
    """Build the table of bytes written to each structure."""
    return _parts(rows, _STRUCTURES, "structure", "Bytes written, by structure")


def _parts(rows: Sequence[Row], names: Mapping[str, str], column: str, title: str) -> Table:
    found = [row for row in rows if row.phase == TOTAL and row.metric in names and row.median > 0]
    # The largest first, over all profiles, in the order of a chart's colours.
    most: dict[str, float] = {}
    for row in found:
        most[row.metric] = most.get(row.metric, 0.0) + row.median
    found.sort(key=lambda row: -most[row.metric])
    wholes = {
        row.profile: row.median for row in rows if row.phase == TOTAL and row.metric == WRITTEN
    }
    data: dict[str, list[object]] = {
        "profile": [row.profile for row in found],
        column: [names[row.metric] for row in found],
        "write_bytes": [row.median for row in found],
        "share": [
            row.median / wholes[row.profile] if wholes.get(row.profile) else None for row in found
        ],
    }
    units = {"write_bytes": "bytes", "share": "share"}
    return Table(f"{column}s", title, _typed(data, ("profile", column)), units)


def _typed(data: Mapping[str, Sequence[object]], texts: Sequence[str]) -> pa.Table:
    """Build a table with explicit types, which also hold without rows."""
    kinds = dict.fromkeys(texts, pa.string()) | {"measured": pa.bool_(), "n": pa.int64()}
    return pa.table(
        {name: pa.array(values, kinds.get(name, pa.float64())) for name, values in data.items()}
    )
