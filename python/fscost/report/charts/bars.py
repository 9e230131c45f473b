"""Bar charts: bytes by kind, and one metric of each profile."""

from collections.abc import Collection, Mapping
from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from fscost.report.charts.latency import NS_LABEL
from fscost.report.charts.style import (
    BAR,
    PALETTE,
    Chart,
    by_colour,
    bytes_axis,
    colours,
    fewest,
    in_order,
    inline,
    paths_axis,
    rows_of,
    words,
)

KINDS = ("data", "metadata", "journal")
_MOST_BEYOND = 2
"""Largest end of an axis, as a multiple of the largest median."""
_UNITS = {
    "count": "",
    "ratio": "device bytes ÷ bytes of the programs",
    "s": "seconds",
    "virtual_s": "virtual seconds",
    "ns": "",
    "virtual_ns": "virtual time",
}
_LOADS = {
    "written": "write_bytes",
    "written as parity or copy": "redundant_write_bytes",
    "read": "read_bytes",
    "read for parity": "parity_read_bytes",
}


def causes(table: pa.Table) -> Any:
    """Draw the bytes of each profile stacked by cause: profile, cause, write_bytes."""
    return _stacked(table.select(["profile", "cause", "write_bytes"]), "profile", "cause")


def structures(table: pa.Table) -> Any:
    """Draw the bytes of each profile stacked by structure: profile, structure, write_bytes."""
    return _stacked(table.select(["profile", "structure", "write_bytes"]), "profile", "structure")


def phases(table: pa.Table) -> Any:
    """Draw the bytes of each profile stacked by measured phase: profile, phase, measured,
    write_bytes."""
    measured = table.filter(table["measured"]).select(["profile", "phase", "write_bytes"])
    names = in_order(fewest(measured, "phase", "write_bytes"), "phase")
    return _stacked(measured, "profile", "phase", names=tuple(names))


def paths(table: pa.Table) -> Any:
    """Draw the most expensive files or directories: path, kind, write_bytes."""
    return _stacked(table, "path", "kind", names=KINDS)


def loads(table: pa.Table) -> Any:
    """Draw the bytes of each disk, by kind: profile, disk, and columns of bytes
    (`view.modelled`)."""
    rows = []
    for row in table.to_pylist():
        parts = {kind: row[column] or 0.0 for kind, column in _LOADS.items()}
        parts["written"] -= parts["written as parity or copy"]
        name = f"{row['profile']}, {row['disk']}"
        rows += [{"disk": name, "kind": kind, "write_bytes": part} for kind, part in parts.items()]
    used = [kind for kind in _LOADS if any(r["kind"] == kind and r["write_bytes"] for r in rows)]
    data = pa.Table.from_pylist([row for row in rows if row["kind"] in used])
    return _stacked(data, "disk", "kind", names=tuple(used))


def measure(
    table: pa.Table, unit: str, repetitions: Mapping[str, Collection[float]] | None = None
) -> Any:
    """Draw one metric: profile, median, low, high (the interval, if there is one). `repetitions`:
    the values of each profile, which become ticks if there are several."""
    data = table.select(["profile", "median", "low", "high"])
    if unit == "years":
        data, unit = _life(data)
    ends = [pc.max(data[name]).as_py() or 0.0 for name in ("median", "high")]
    # An interval many times as long as the bars would hide them: it is cut off, with an arrow.
    end = min(max(ends), _MOST_BEYOND * ends[0]) if ends[0] else max(ends)
    title = _UNITS.get(unit, unit)
    axis = alt.Axis(title=title, tickCount=4, labelOverlap="greedy")
    if unit == "bytes":
        axis = bytes_axis(end)
    elif unit.endswith("ns"):
        axis = alt.Axis(labelExpr=NS_LABEL, title=title, tickCount=4, labelOverlap="greedy")
    names = in_order(data, "profile")
    labels, height = rows_of(names)
    base = Chart(inline(data)).encode(
        y=alt.Y("profile:N", sort=names, title=None, axis=labels),
        tooltip=[
            alt.Tooltip(f"{name}:{kind}")
            for name, kind in (("profile", "N"), ("median", "Q"), ("low", "Q"), ("high", "Q"))
        ],
    )
    scale = alt.Scale(domain=[0, end], nice=end == max(ends))
    bars = base.mark_bar(color=PALETTE[0], height=BAR * 0.6).encode(
        x=alt.X("median:Q", axis=axis, scale=scale)
    )
    ranges = (
        base.transform_filter(alt.FieldValidPredicate(field="low", valid=True))
        .transform_calculate(seen_high=f"min(datum.high, {end})")
        .mark_rule(strokeWidth=2, color=PALETTE[1])
        .encode(x=alt.X("low:Q"), x2=alt.X2("seen_high:Q"))
    )
    arrows = (
        base.transform_filter(f"datum.high > {end}")
        .transform_calculate(end=f"{end}")
        .mark_point(
            shape="triangle-right", filled=True, size=60, color=PALETTE[1], opacity=1, aria=False
        )
        .encode(x=alt.X("end:Q"))
    )
    ticks = _ticks(repetitions or {}, names, end)
    marks = [bars, ranges, arrows] if ticks is None else [bars, ranges, ticks, arrows]
    return alt.layer(*marks, height=height)


def _ticks(values: Mapping[str, Collection[float]], names: list[str], end: float) -> Any:
    """Draw a tick for each repetition; None if no profile has several."""
    if max((len(each) for each in values.values()), default=0) < 2:
        return None
    rows = [
        {"profile": name, "repetition": value}
        for name in names
        for value in values.get(name, ())
        if value <= end
    ]
    return (
        Chart(inline(pa.Table.from_pylist(rows)))
        .mark_tick(thickness=1, size=BAR * 0.35, color=PALETTE[1], opacity=0.8, aria=False)
        .encode(
            x=alt.X("repetition:Q"),
            y=alt.Y("profile:N", sort=names),
            tooltip=[alt.Tooltip("profile:N"), alt.Tooltip("repetition:Q")],
        )
    )


def _life(data: pa.Table) -> tuple[pa.Table, str]:
    """Convert years to the largest unit of which the longest life is at least one."""
    longest = pc.max(data["median"]).as_py() or 0.0
    units = (("years", 1), ("days", 365), ("hours", 365 * 24), ("minutes", 365 * 24 * 60))
    unit, factor = next((each for each in units if longest * each[1] >= 1), units[-1])
    for place, name in enumerate(data.column_names):
        if name != "profile":
            data = data.set_column(place, name, pc.multiply(data[name], float(factor)))
    return data, unit


def _stacked(table: pa.Table, row: str, part: str, names: tuple[str, ...] = ()) -> Any:
    few = fewest(table, part, "write_bytes")
    sums = few.group_by(row).aggregate([("write_bytes", "sum")])
    most = pc.max(sums["write_bytes_sum"]).as_py() or 0.0
    rows = in_order(table, row)
    if row == "profile":
        # The one that wrote the least comes first, and ties keep their order.
        totals = dict(zip(sums[row].to_pylist(), sums["write_bytes_sum"].to_pylist(), strict=True))
        rows.sort(key=totals.__getitem__)
    order = list(names) or by_colour(in_order(few, part))
    # Stack in the legend's order, by number, because Vega otherwise sorts colours by name.
    rank = pa.array([order.index(name) for name in few[part].to_pylist()], pa.int64())
    labels, height = (paths_axis(), alt.Step(BAR)) if row == "path" else rows_of(rows)
    return (
        Chart(inline(few.append_column("rank", rank)), height=height)
        .mark_bar(height=BAR * 0.7)
        .encode(
            x=alt.X("write_bytes:Q", axis=bytes_axis(most), stack="zero"),
            y=alt.Y(f"{row}:N", sort=rows, title=None, axis=labels),
            color=alt.Color(f"{part}:N", scale=colours(order), legend=words()),
            order=alt.Order("rank:Q"),
            tooltip=[
                alt.Tooltip(f"{row}:N"),
                alt.Tooltip(f"{part}:N"),
                alt.Tooltip("write_bytes:Q", format=",.0f", title="bytes"),
            ],
        )
    )
