"""Distributions of times: the share that took longer than a given time."""

from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from fscost.report.charts.style import PALETTE, Chart, in_order, inline, names_of

_DASHES = ([1, 0], [6, 3], [2, 2])
"""Dash patterns of lines: each pattern repeats all colours."""
NS_LABEL = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s'"
    " : datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms'"
    " : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' µs'"
    " : format(datum.value, '~g') + ' ns'"
)


def _ticks(data: pa.Table) -> list[int]:
    """Return ticks 1, 3, 10, 30, … between the ends of the axis."""
    ends = pc.min_max(data["at_most_ns"]).as_py()
    steps = [digit * 10**power for power in range(19) for digit in (1, 3)]
    return [step for step in steps if ends["min"] <= step <= ends["max"]]


def latencies(table: pa.Table) -> Any:
    """Draw a line for each profile: profile, at_most_ns, requests, longer (the share that took
    longer). Both axes are logarithmic, so that the slowest of a thousand are as visible as the
    median."""
    names = in_order(table, "profile")
    rows = [row for row in table.to_pylist() if row["longer"] > 0]
    # Each line begins at 100 %, to the left of the fastest value.
    least: dict[str, int] = {}
    for row in table.to_pylist():
        least[row["profile"]] = min(row["at_most_ns"], least.get(row["profile"], row["at_most_ns"]))
    firsts = [
        {"profile": name, "at_most_ns": max(least[name] // 2, 1), "requests": 0, "longer": 1.0}
        for name in names
    ]
    columns = ["profile", "at_most_ns", "requests", "longer"]
    data = pa.Table.from_pylist(
        [*firsts, *({name: row[name] for name in columns} for row in rows)],
        pa.schema([table.schema.field(name) for name in columns]),
    )
    colours = alt.Scale(domain=names, range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])
    dashes = alt.Scale(
        domain=names, range=[_DASHES[i // len(PALETTE) % len(_DASHES)] for i in range(len(names))]
    )
    return (
        Chart(inline(data), height=220)
        .mark_line(interpolate="step-after", strokeWidth=2, point=alt.OverlayMarkDef(size=24))
        .encode(
            x=alt.X(
                "at_most_ns:Q",
                title="longer than",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(labelExpr=NS_LABEL, values=_ticks(data), labelOverlap=True),
            ),
            y=alt.Y(
                "longer:Q",
                title="share",
                scale=alt.Scale(type="log", domainMax=1),
                axis=alt.Axis(
                    format="~%", values=[1, 0.5, 0.1, 0.01, 0.001, 0.0001], labelOverlap=True
                ),
            ),
            color=alt.Color("profile:N", scale=colours, legend=names_of(names)),
            strokeDash=alt.StrokeDash("profile:N", scale=dashes, legend=names_of(names)),
            order=alt.Order("at_most_ns:Q"),
            tooltip=[
                alt.Tooltip("profile:N"),
                alt.Tooltip("longer:Q", format=".3~%", title="share that took longer"),
                alt.Tooltip("at_most_ns:Q", format=",", title="than, in ns"),
            ],
        )
    )
