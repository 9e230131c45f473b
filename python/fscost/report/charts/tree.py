"""Treemap: directories and their files as areas (squarified: Bruls et al., 2000)."""

from collections import Counter
from typing import Any

import altair as alt
import pyarrow as pa
import squarify

from fscost.analyze import NO_FILE
from fscost.report.charts.bars import KINDS
from fscost.report.charts.style import LARGE, Chart, colours, inline
from fscost.view.units import human_bytes

_HEIGHT = 360
_HEADER = 15
"""Height of a directory's name, in pixels, if its area is high enough."""
_ROOM = f"floor(((datum.right - datum.left) / {LARGE} * width - 6) / 6.5)"
"""Letters that fit into an area at the width at which the chart is drawn."""
_DIRECTORY = (
    f"(length(datum.text) <= {_ROOM} ? datum.text"
    f" : length(datum.directory) <= {_ROOM} ? datum.directory"
    f" : {_ROOM} < 6 ? '' : '…' + slice(datum.directory, 1 - {_ROOM}))"
)
"""The name of a directory and its bytes, if there is room; without room, the end of its name."""
_NAME = (
    f"(length(datum.name) <= {_ROOM} ? datum.name"
    f" : length(datum.short) <= {_ROOM} ? datum.short : '')"
)
"""The name of a file, or its last part, if there is room."""
_NOWHERE = {"left": 0.0, "right": 0.0, "top": 0.0, "directory": "", "text": ""}


def tree(table: pa.Table) -> Any:
    """Draw bytes as areas: directory, name, kind, files, write_bytes (`fscost.analyze.tree`)."""
    rows, names = _rectangles(table)
    data = Chart(inline(pa.Table.from_pylist(rows))) if rows else Chart(inline(table))
    place = {
        "x": alt.X("left:Q", axis=None, scale=alt.Scale(domain=[0, LARGE], nice=False)),
        "x2": alt.X2("right:Q"),
        "y": alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[_HEIGHT, 0], nice=False)),
        "y2": alt.Y2("bottom:Q"),
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
        Chart(inline(pa.Table.from_pylist(names or [_NOWHERE])))
        .mark_text(
            align="left", baseline="top", fontSize=11, color="#767676", text=alt.ExprRef(_DIRECTORY)
        )
        .encode(x=alt.X("left:Q"), y=alt.Y("top:Q"))
    )
    inside = (
        data.mark_text(
            align="left",
            baseline="top",
            fontSize=11,
            dx=3,
            dy=3,
            color="white",
            text=alt.ExprRef(_NAME),
        )
        .transform_filter(f"datum.bottom - datum.top >= {_HEADER}")
        .encode(x=alt.X("left:Q"), y=alt.Y("top:Q"))
    )
    return alt.layer(areas, words, inside, height=_HEIGHT)


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
        directory = "no single file" if name == NO_FILE else name
        header = _HEADER if area["dy"] > 2 * _HEADER else 0
        if header:
            names.append(
                {
                    "left": area["x"] + 3,
                    "right": area["x"] + area["dx"],
                    "top": area["y"] + 2,
                    "directory": directory,
                    "text": f"{directory} {human_bytes(sums[name])}",
                }
            )
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
        "short": row["name"].rpartition("/")[2],
    }
