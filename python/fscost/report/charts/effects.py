"""Chart of the effects of a sweep's options."""

from typing import Any

import altair as alt
import pyarrow as pa

from fscost.report.charts.style import BAR, inline

_MOST = 24
_SHOWN = {True: "#4477AA", False: "#BBBBBB"}


def effects(table: pa.Table) -> Any:
    """Draw the largest effects with their intervals: option, unit, effect, low, high, verdict. A
    ratio is on a logarithmic axis, so that half and twice are equally far from no effect."""
    first = table["unit"][0].as_py()
    rows = [row for row in table.to_pylist() if row["unit"] == first][:_MOST]
    names = list(dict.fromkeys(row["option"] for row in rows))
    data = inline(
        pa.Table.from_pylist([{**row, "shown": row["verdict"] in _CHANGES} for row in rows])
    )
    is_ratio = first == "times"
    scale = alt.Scale(type="log", nice=False) if is_ratio else alt.Scale(zero=True)
    axis = alt.Axis(title="effect (1 = none)" if is_ratio else f"effect ({first})", format="~r")
    colour = alt.Color(
        "shown:N",
        legend=None,
        scale=alt.Scale(domain=list(_SHOWN), range=list(_SHOWN.values())),
    )
    base = alt.Chart(data).encode(y=alt.Y("option:N", sort=names, title=None), color=colour)
    none = (
        alt.Chart(inline(pa.table({"none": [1.0 if is_ratio else 0.0]})))
        .mark_rule(strokeDash=[4, 4], color="#888888")
        .encode(x=alt.X("none:Q", scale=scale, axis=axis))
    )
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
    )
    point = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("effect:Q", scale=scale, axis=axis),
        tooltip=[
            *(alt.Tooltip(f"{name}:N") for name in ("option", "against", "verdict")),
            *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("effect", "low", "high")),
        ],
    )
    parts = none + interval + point if rows[0]["low"] is not None else none + point
    return parts.properties(height=alt.Step(BAR + 6))


_CHANGES = ("lower", "higher")
