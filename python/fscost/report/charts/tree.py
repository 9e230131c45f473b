"""Treemap: directories and their files as areas (squarified: Bruls et al., 2000)."""

from collections import Counter
from typing import Any

import altair as alt
import pyarrow as pa
import squarify

from fscost.analyze import NO_FILE
from fscost.report.charts.bars import KINDS
from fscost.report.charts.style import LARGE, colours, inline
from fscost.view.units import human_bytes

_HEIGHT = 360
_HEADER = 15
"""Height of a directory's name, in pixels, if its area is high enough."""
_LETTER = 6.5
"""Width of a character, in pixels."""
_SHORTEST = 6


def tree(table: pa.Table) -> Any:
    """Draw bytes as areas: directory, name, kind, files, write_bytes (`fscost.analyze.tree`)."""
    rows, names = _rectangles(table)
    data = alt.Chart(inline(pa.Table.from_pylist(rows))) if rows else alt.Chart(inline(table))
    place = {
        "x": alt.X("left:Q", axis=None, scale=alt.Scale(domain=[0, LARGE], nice=False)),
        "x2": "right:Q",
        "y": alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[_HEIGHT, 0], nice=False)),
        "y2": "bottom:Q",
    }
    areas = data.mark_rect(stroke="white", strokeWidth=0.6).encode(
        **place,
        color=alt.Color("kind:N", scale=colours(KINDS), title=None),
        tooltip=[
            alt.Tooltip("directory:N"),
            alt.Tooltip("name:N"),
            alt.Tooltip("files:Q"),
            alt.Tooltip("kind:N", title="mostly"),
            alt.Tooltip("size:N", title="written"),
        ],
    )
    words = (
        alt.Chart(inline(pa.Table.from_pylist(names or [{"x": 0.0, "y": 0.0, "text": ""}])))
        .mark_text(align="left", baseline="top", fontSize=11, color="#767676")
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text="text:N")
    )
    inside = (
        data.mark_text(align="left", baseline="top", fontSize=11, dx=3, dy=3, color="white")
        .transform_filter("datum.text != ''")
        .encode(x=alt.X("left:Q"), y=alt.Y("top:Q"), text="text:N")
    )
    return (areas + words + inside).properties(height=_HEIGHT)


def _rectangles(table: pa.Table) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rectangles of files, and the names of directories with their positions."""
    found = table.to_pylist()
    sums: Counter[str] = Counter()
    for row in found:
        sums[row["directory"]] += row["write_bytes"]
    order = [name for name, count in sums.most_common() if count]
    rectangles, names = [], []
    for name, area in zip(
        order, _squares([sums[n] for n in order], 0, 0, LARGE, _HEIGHT), strict=True
    ):
        shown = f"{'no single file' if name == NO_FILE else name} {human_bytes(sums[name])}"
        text = _text(shown, area["dx"])
        header = _HEADER if text and area["dy"] > 2 * _HEADER else 0
        if header:
            names.append({"x": area["x"] + 3, "y": area["y"] + 2, "text": text})
        mine = sorted(
            (row for row in found if row["directory"] == name and row["write_bytes"]),
            key=lambda row: -row["write_bytes"],
        )
        inside = _squares(
            [row["write_bytes"] for row in mine],
            area["x"] + 1,
            area["y"] + header,
            max(area["dx"] - 2, 0.1),
            max(area["dy"] - header - 1, 0.1),
        )
        rectangles += [_rectangle(row, each) for row, each in zip(mine, inside, strict=True)]
    return rectangles, names


def _squares(sizes: list[int], x: float, y: float, dx: float, dy: float) -> list[dict[str, float]]:
    return list(squarify.squarify(squarify.normalize_sizes(sizes, dx, dy), x, y, dx, dy))


def _rectangle(row: dict[str, Any], area: dict[str, float]) -> dict[str, Any]:
    return {
        "directory": row["directory"],
        "name": row["name"],
        "kind": row["kind"],
        "files": row["files"],
        "size": human_bytes(row["write_bytes"]),
        "left": round(area["x"], 1),
        "right": round(area["x"] + area["dx"], 1),
        "top": round(area["y"], 1),
        "bottom": round(area["y"] + area["dy"], 1),
        "text": _name(row["name"], area) if area["dy"] >= _HEADER else "",
    }


def _text(text: str, width: float) -> str:
    """Return as much of the text's end as fits."""
    room = int(width / _LETTER)
    if len(text) <= room:
        return text
    return f"…{text[1 - room :]}" if room >= _SHORTEST else ""


def _name(name: str, area: dict[str, float]) -> str:
    """Return the name, or its last part, if there is room for it."""
    room = int((area["dx"] - 4) / _LETTER)
    return next((text for text in (name, name.rpartition("/")[2]) if len(text) <= room), "")
