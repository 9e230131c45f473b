"""Charts of claims: measured beside published values, and the range in which a criterion holds."""

import textwrap
from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from fscost.report.charts.style import BAR, Chart, inline

_LETTERS, _LINE = 26, 15
"""Letters per line of a row's name, and the height of a line."""
_ROOM = 0.15
"""Extra share of the axis beyond an open bound."""
_SHEET, _TITLE_LETTERS = 520, 90
_FORMATS = {"percent": ".0%", "s": "~s", "bytes": "~s"}
_OUTCOMES = {"holds": "#4477AA", "fails": "#EE6677", "reversed": "#AA3377", "open": "#999999"}
_BAND, _PUBLISHED = "#228833", "#888888"


def claim(table: pa.Table) -> Any:
    """Draw the criteria of one claim and one unit: criterion, kernel, unit, at_least, at_most,
    published, median, low, high, outcome."""
    rows = [row for row in table.to_pylist() if row["median"] is not None]
    least, most = _ends(rows)
    data = inline(pa.Table.from_pylist([_shown(row, least, most) for row in rows]))
    names = list(dict.fromkeys(_name(row) for row in rows))
    scale = alt.Scale(domain=[least, most], nice=False, zero=False)
    axis = alt.Axis(title=None, tickCount=5, format=_FORMATS.get(rows[0]["unit"], "~r"))
    labels = alt.Axis(labelExpr="split(datum.label, '\\n')")
    base = Chart(data).encode(y=alt.Y("name:N", sort=names, title=None, axis=labels))
    band = base.mark_bar(color=_BAND, opacity=0.2, height=BAR).encode(
        x=alt.X("from:Q", scale=scale, axis=axis), x2=alt.X2("to:Q")
    )
    colour = alt.Color(
        "outcome:N",
        title=None,
        scale=alt.Scale(domain=list(_OUTCOMES), range=list(_OUTCOMES.values())),
    )
    interval = base.mark_rule(strokeWidth=3, clip=True).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), color=colour
    )
    measured = base.mark_point(filled=True, size=90, clip=True, opacity=1).encode(
        x=alt.X("median:Q", scale=scale, axis=axis),
        color=colour,
        tooltip=[
            *(alt.Tooltip(f"{name}:N") for name in ("criterion", "kernel", "outcome")),
            *(
                alt.Tooltip(f"{name}:Q", format=".4g")
                for name in ("published", "median", "low", "high")
            ),
        ],
    )
    published = base.mark_point(
        shape="diamond", filled=False, size=90, strokeWidth=2, color=_PUBLISHED, clip=True
    ).encode(x=alt.X("published:Q", scale=scale, axis=axis))
    lines = max(name.count("\n") + 1 for name in names)
    height = alt.Step(max(BAR + 6, _LINE * lines + 4))
    marks = [band, interval, measured]
    # An empty layer would be an image without a name.
    if any(row["published"] is not None for row in rows):
        marks = [band, interval, published, measured]
    return alt.layer(*marks, height=height)


def claims_sheet(table: pa.Table) -> Any:
    """Draw several claims below each other: the columns of `claim`, and claim (its number) and
    text."""
    parts = []
    keys = dict.fromkeys(zip(table["claim"].to_pylist(), table["unit"].to_pylist(), strict=True))
    for number, unit in keys:
        mine = table.filter(
            pc.and_(pc.equal(table["claim"], number), pc.equal(table["unit"], unit))
        )
        words = textwrap.wrap(mine["text"][0].as_py(), _TITLE_LETTERS)
        title = alt.TitleParams(words, anchor="start", fontSize=13)
        parts.append(claim(mine).properties(width=_SHEET, title=title))
    return alt.vconcat(*parts).resolve_scale(color="shared")


def _ends(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the ends of the axis. An interval that is wider than everything else is cut off."""
    fixed = [
        row[name]
        for row in rows
        for name in ("median", "published", "at_least", "at_most")
        if row[name] is not None
    ]
    least, most = min(fixed), max(fixed)
    span = (most - least) or abs(most) or 1.0
    lows = [row["low"] for row in rows if row["low"] is not None]
    highs = [row["high"] for row in rows if row["high"] is not None]
    room = span * _ROOM
    return (
        max(min([least, *lows]), least - span) - room,
        min(max([most, *highs]), most + span) + room,
    )


def _shown(row: dict[str, Any], least: float, most: float) -> dict[str, Any]:
    """Return a row of the table with its name, and its band within the axis."""
    columns = ("criterion", "kernel", "outcome", "published", "median", "low", "high")
    return {
        **{name: row[name] for name in columns},
        "name": _name(row),
        "from": least if row["at_least"] is None else row["at_least"],
        "to": most if row["at_most"] is None else row["at_most"],
    }


def _name(row: dict[str, Any]) -> str:
    at = f" @{row['kernel']}" if row["kernel"] else ""
    return "\n".join(textwrap.wrap(row["criterion"] + at, _LETTERS))
