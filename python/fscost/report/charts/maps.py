"""Charts over time and place: bytes over time, and maps of a disk's blocks (tables of
`analyze.Maps`)."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from fscost.analyze import AREAS
from fscost.report.charts.style import (
    PALETTE,
    Chart,
    by_colour,
    bytes_axis,
    colours,
    fewest,
    in_order,
    inline,
    rows_of,
    words,
)
from fscost.view.units import human_bytes

_ROWS = 80
_TICKS = (0, 20, 40, 60)
_SOLID = alt.Scale(paddingInner=0, round=True)
_TOP = alt.YValue(0)  # type: ignore[no-untyped-call]
Phases = Sequence[tuple[str, float]]


def over_time(timeline: pa.Table, phases: Phases, causes: Sequence[str] = ()) -> Any:
    """Draw the bytes of each time slice, by cause. `causes` are in the order of their colours if
    other figures show them too."""
    few = fewest(timeline, "cause", "write_bytes", causes)
    totals = few.group_by("slice_begin_s").aggregate([("write_bytes", "sum")])
    most = pc.max(totals["write_bytes_sum"]).as_py() or 0.0
    order = by_colour(causes or in_order(few, "cause"))
    bars = (
        Chart(inline(few))
        .mark_bar(orient="vertical")
        .encode(
            x=_seconds("slice_begin_s"),
            x2=alt.X2("slice_end_s"),
            y=alt.Y("write_bytes:Q", axis=bytes_axis(most), stack="zero"),
            color=alt.Color("cause:N", scale=colours(order), legend=words()),
            tooltip=[
                alt.Tooltip("slice_begin_s:Q", format=".3f", title="from second"),
                alt.Tooltip("cause:N"),
                alt.Tooltip("write_bytes:Q", format=",.0f", title="bytes"),
            ],
        )
    )
    return alt.layer(bars, _phases(phases), height=200)


def _distinct(offsets: dict[int, int]) -> dict[int, str]:
    """Label offsets. Three digits do not tell 1.876 GiB from 1.878 GiB."""
    labels = {row: human_bytes(offset) for row, offset in offsets.items()}
    if len(set(labels.values())) == len(set(offsets.values())):
        return labels
    return {row: f"{offset / (1 << 20):,.2f} MiB" for row, offset in offsets.items()}


def block_map(blocks: pa.Table, phases: Phases) -> Any:
    """Draw offset over time, with each cell coloured by the structures of most of its bytes. Only
    written places have a row."""
    offsets = zip(blocks["row"].to_pylist(), blocks["offset_bytes"].to_pylist(), strict=True)
    ticks = _distinct({row: offset for row, offset in offsets if row in _TICKS})
    axis = alt.Axis(
        values=list(ticks),
        labelExpr=f"{json.dumps(ticks)}[datum.value]",
        title="offset on the disk (places never written are left out)",
        grid=False,
    )
    found = set(blocks["area"].to_pylist())
    areas = [name for name in AREAS if name in found]
    cells = (
        Chart(inline(blocks.drop_columns(["disk"])))
        .transform_calculate(row_end="datum.row + 1")
        .mark_rect()
        .encode(
            x=_seconds("slice_begin_s"),
            x2=alt.X2("slice_end_s"),
            y=alt.Y("row:Q", axis=axis, scale=alt.Scale(domain=[0, _ROWS], nice=False)),
            y2=alt.Y2("row_end:Q"),
            color=alt.Color("area:N", scale=colours(areas), title=None),
            tooltip=[
                alt.Tooltip("area:N"),
                alt.Tooltip("offset_bytes:Q", format=",", title="from byte"),
                alt.Tooltip("slice_begin_s:Q", format=".3f", title="from second"),
                alt.Tooltip("write_bytes:Q", format=",", title="bytes written"),
            ],
        )
    )
    return alt.layer(cells, _phases(phases), height=320)


def rewrites(table: pa.Table) -> Any:
    """Draw how often the blocks of a disk were written: cells in order of offsets, row by row."""
    most = pc.max(table["most_writes"]).as_py() or 1
    return _heat_map(
        table.drop_columns(["disk"]),
        x="column:O",
        y=alt.Y("row:O", axis=None, scale=_SOLID),
        color=alt.Color(
            "most_writes:Q",
            scale=alt.Scale(scheme="cividis", type="log", domain=[1, max(2, most)]),
            legend=alt.Legend(title="writes of one block", format="d"),
        ),
        tooltip=[
            alt.Tooltip("offset_bytes:Q", format=",", title="from byte"),
            alt.Tooltip("most_writes:Q", title="writes of one block"),
        ],
        height=200,
    )


def wear_map(table: pa.Table) -> Any:
    """Draw the mean erases of neighbouring blocks, with a row for each profile or disk: row, cell,
    first_block, last_block, mean_erases."""
    most = pc.max(table["mean_erases"]).as_py() or 1
    names = in_order(table, "row")
    labels, height = rows_of(names)
    return _heat_map(
        table,
        x="cell:O",
        y=alt.Y("row:N", sort=names, title=None, axis=labels),
        color=alt.Color(
            "mean_erases:Q",
            scale=alt.Scale(scheme="cividis", domain=[0, most]),
            legend=alt.Legend(title="erases"),
        ),
        tooltip=[
            alt.Tooltip("row:N", title="of"),
            alt.Tooltip("first_block:Q", format=",", title="from block"),
            alt.Tooltip("last_block:Q", format=",", title="to block"),
            alt.Tooltip("mean_erases:Q", format=",.2f", title="mean erases"),
        ],
        height=height,
    )


def _heat_map(table: pa.Table, x: str, height: Any, **channels: Any) -> Any:
    column = alt.X(x, axis=None, scale=_SOLID)
    return Chart(inline(table), height=height).mark_rect().encode(x=column, **channels)


def writes_per_place(table: pa.Table) -> Any:
    """Draw the bytes of places by how often they were written."""
    uppers = table["most_writes"].to_pylist()
    names = [_class(upper) for upper in uppers]
    most = pc.max(table["bytes"]).as_py() or 0
    data = table.append_column("writes", pa.array(names, pa.string()))
    return (
        Chart(inline(data), height=200)
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("writes:N", sort=names, title="times written", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("bytes:Q", axis=bytes_axis(most)),
            tooltip=[alt.Tooltip("writes:N"), alt.Tooltip("bytes:Q", format=",")],
        )
    )


def _class(upper: int) -> str:
    lower = upper // 2 + 1
    return str(upper) if lower >= upper else f"{lower}–{upper}"


def _seconds(name: str) -> alt.X:
    return alt.X(
        f"{name}:Q",
        title="seconds",
        scale=alt.Scale(nice=False, zero=True),
        axis=alt.Axis(grid=False, tickCount=8),
    )


def _phases(phases: Phases) -> Any:
    """Draw a line where each phase begins, with its name."""
    rows = [{"phase": name, "begin_s": begin_s} for name, begin_s in phases]
    table = pa.Table.from_pylist(rows, pa.schema({"phase": pa.string(), "begin_s": pa.float64()}))
    base = Chart(inline(table)).encode(x=alt.X("begin_s:Q"))
    lines = base.mark_rule(strokeDash=[3, 3], color="#888888")
    names = base.mark_text(
        align="left", baseline="top", dx=4, dy=2, fontSize=11, color="#888888"
    ).encode(text=alt.Text("phase:N"), y=_TOP)
    return alt.layer(lines, names)
