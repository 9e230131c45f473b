"""Chart of the effects of a sweep's options."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pyarrow as pa

from fscost.report.charts.style import Chart, inline, rows_of

_MOST = 24
_WIDE, _MOST_TICKS = 4, 6
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
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
    axis = alt.Axis(
        title="effect (1 = none)" if is_ratio else f"effect ({first})",
        format="~r",
        labelOverlap="greedy",
        values=_ratios(rows) if is_ratio else alt.Undefined,
    )
    colour = alt.Color(
        "shown:N",
        legend=None,
        scale=alt.Scale(domain=list(_SHOWN), range=list(_SHOWN.values())),
    )
    labels, height = rows_of(names)
    y = alt.Y("option:N", sort=names, title=None, axis=labels)
    base = Chart(data).encode(y=y, color=colour)
    none = (
        Chart(inline(pa.table({"none": [1.0 if is_ratio else 0.0]})))
        .mark_rule(strokeDash=[4, 4], color="#888888")
        .encode(x=alt.X("none:Q", scale=scale, axis=axis))
    )
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q")
    )
    point = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("effect:Q", scale=scale, axis=axis),
        tooltip=[
            *(alt.Tooltip(f"{name}:N") for name in ("option", "against", "verdict")),
            *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("effect", "low", "high")),
        ],
    )
    marks = [none, interval, point] if rows[0]["low"] is not None else [none, point]
    return alt.layer(*marks, height=height)


def _ratios(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return round ratios between the ends of the axis. Vega labels a logarithmic axis at powers of
    ten, and most effects are smaller."""
    found = [row[name] for row in rows for name in ("effect", "low", "high") if row[name]]
    least, most = min([*found, 1.0]), max([*found, 1.0])
    if most / least > _WIDE:
        digits = (digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5))
        return [each for each in digits if least <= each <= most]
    step = next((step for step in _STEPS if (most - least) / step <= _MOST_TICKS), 1.0)
    numbers = range(math.ceil(least / step), math.floor(most / step) + 1)
    return [round(number * step, 3) for number in numbers]


_CHANGES = ("lower", "higher")
