"""Style of all figures: colours, axes, and the conversion of tables to chart data."""

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal

import altair as alt
import pyarrow as pa

PALETTE = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#EE8866", "#999999")
"""Paul Tol's "bright" with an orange (https://personal.sron.nl/~pault/), which colour-blind readers
can distinguish on white and on black. The last colour is for the remainder."""
_LIGHTER = ("#A3BDD8", "#F7ACB5", "#86C490", "#E6DE9F", "#B5E6F7", "#D690BA", "#F7BEA9", "#CCCCCC")
_DARKER = ("#264766", "#A33340", "#115522", "#80752A", "#3A8AA6", "#661F47", "#A65A40", "#666666")
"""Shades of the palette, for several names of one kind in a chart."""
OTHERS = "all others"
_FIXED = (
    ("data", "file_data", "file data", "written"),
    (
        *("journal_copy", "journal", "journal or log", "log", "log_tree"),
        *("journal_commit", "journal_descriptor", "padding"),
    ),
    ("metadata", "inode_table", "inode_chunk", "inodes and names", "fs_tree", "new_inode"),
    ("allocation", "accounting", "free space", "block_bitmap", "extent_tree", "free_space_tree"),
    ("size_or_extents", "extent_map", "csum_tree"),
    ("directory_entries", "directory", "RAID", "links_or_mode"),
    ("atime", "times", "superblock", "other metadata"),
    (OTHERS, "unknown", "mixed"),
)
"""Names by colour of the palette. Every chart draws them in this colour or a shade of it: data is
always blue, the journal always red."""
_COLOUR_OF = {name: number for number, names in enumerate(_FIXED) for name in names}
LARGE = 720
"""Width of a figure in a file; a page fits it to the page's column."""
BAR = 22
"""Height of a row of bars."""
FONT = "system-ui, sans-serif"
_LETTERS, _LINE = 24, 14
"""Letters per line and height of a line of names beside bars. They leave half of a phone's width to
the bars."""
_BEYOND = 8
"""Pixels by which a label may be outside its axis; the padding on the right has room for them."""
PADDING = {"left": 28, "right": _BEYOND + 4, "top": 5, "bottom": 5}
"""Around a figure in a file. A reader's font may be wider than the one that labels were measured
with."""
ROOM = f"max(width, isFinite(containerSize()[0]) ? containerSize()[0] : {LARGE})"
"""Width of a figure on a page or in a file. Vega's own `width` is without the names on the left,
and becomes final only after the legend has been placed."""
_MOST_TICKS = 5
_LETTER = 7
"""Pixels of a letter of a legend."""
_LONGEST_LABEL = 310
"""Pixels of a label of a legend that a phone has room for."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class _Rows(alt.InlineData):
    """Rows that nobody changes: altair copies a chart for each of its parts, and would copy them
    with it."""

    def __deepcopy__(self, _: object = None) -> "_Rows":
        return self


class Chart(alt.Chart):
    """Chart whose mark and encoding nobody changes: altair copies each layer several times, and
    would copy them with it, which takes half of the time of all charts."""

    def __deepcopy__(self, _: object = None) -> "Chart":
        return self.copy(deep=False)


def inline(table: pa.Table) -> alt.InlineData:
    """Embed a table in the chart."""
    return _Rows(table.to_pylist())


def themed(
    chart: Any,
    width: int | str = LARGE,
    background: str = "transparent",
    *,
    is_validated: bool = True,
) -> dict[str, Any]:
    """Return the specification of a chart of this width ("container": the page's width)."""
    padding = PADDING | ({"left": 5} if width == "container" else {})
    # Altair copies all layers of a chart for each property that it sets.
    spec = chart.to_dict(validate=is_validated) | {"width": width, "padding": padding}
    return configured(spec, background)


def configured(
    spec: dict[str, Any], background: str = "transparent", fit: Literal["fit-x", "pad"] = "fit-x"
) -> dict[str, Any]:
    """Apply the common style to the specification of a chart that has a width. Several charts in
    one take "pad" as their `fit`."""
    style, default = _style(background, fit), spec["config"]
    return spec | {"config": default | style | {"view": default["view"] | style["view"]}}


@cache
def _style(background: str, fit: Literal["fit-x", "pad"]) -> dict[str, Any]:
    found: dict[str, Any] = alt.Config(
        background=background,
        font=FONT,
        autosize=alt.AutoSizeParams(type=fit, contains="padding"),
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            domain=False,
            labelBound=_BEYOND,
            labelFontSize=12,
            labelLimit=220,
            labelPadding=6,
            labelSeparation=6,
            tickSize=0,
            titleFontSize=12,
            titleFontWeight="normal",
            gridOpacity=0.5,
        ),
        # A title that is wider than its axis continues below the names on the left.
        axisX=alt.AxisConfig(titleAnchor="end"),
        legend=alt.LegendConfig(
            columns=alt.ExprRef(f"{ROOM} < 420 ? 1 : 4"),
            gradientLength=alt.ExprRef("min(200, width)"),
            labelFontSize=12,
            # The font of a reader may be wider than the one with which a file was measured.
            columnPadding=24,
            labelLimit=160,
            orient="bottom",
            symbolType="square",
            titleFontWeight="normal",
        ),
    ).to_dict()
    return found


def bytes_axis(most: float, title: str = "") -> alt.Axis:
    """Build an axis of bytes from zero, with round numbers of the binary unit that suits its
    largest value."""
    unit = 1024 ** min(int(math.log(most, 1024)), len(_UNITS) - 1) if most >= 1 else 1
    step = (
        next((size for size in _steps() if most / unit / size <= _MOST_TICKS), most / unit) * unit
    )
    label = f"format(datum.value / {unit}, ',~r') + ' {_UNITS[round(math.log(unit, 1024))]}'"
    ticks = [step * number for number in range(_MOST_TICKS + 2)]
    return alt.Axis(labelExpr=label, title=title or None, values=ticks, labelOverlap=True)


def rows_of(names: Sequence[str]) -> tuple[alt.Axis, alt.Step]:
    """Return an axis with long names in several lines, and the height of a row that has room for
    them."""
    lines = {name: textwrap.wrap(name, _LETTERS) for name in names}
    most = max((len(each) for each in lines.values()), default=1)
    # Vega puts the first line beside the bar, and the others below.
    up = {name: _LINE / 2 * (1 - len(each)) for name, each in lines.items() if len(each) > 1}
    axis = alt.Axis(
        labelExpr=f"{json.dumps(lines)}[datum.value]",
        labelOffset=alt.ExprRef(f"{json.dumps(up)}[datum.value] || 0") if up else alt.Undefined,
        labelLineHeight=_LINE,
    )
    return axis, alt.Step(max(BAR, _LINE * most + 6))


def paths_axis() -> alt.Axis:
    """Return an axis with the ends of paths, which tell more than their beginnings."""
    letters = f"({ROOM} < 420 ? {_LETTERS} : {2 * _LETTERS})"
    end = f"'…' + slice(datum.label, 1 - {letters})"
    return alt.Axis(
        labelExpr=f"length(datum.label) > {letters} ? {end} : datum.label", labelLimit=0
    )


def _steps() -> Iterator[float]:
    """Yield 0.1, 0.2, 0.5, 1, 2, …"""
    for power in range(-1, 4):
        yield from (10**power * digit for digit in (1, 2, 5))


def colours(names: Sequence[str]) -> alt.Scale:
    """Assign one colour each: the name's own (`_FIXED`), a lighter or darker shade of it if a name
    before it there has it, otherwise a free one, data's and the journal's last. `OTHERS` comes
    last."""
    ordered = sorted(names, key=lambda name: name == OTHERS)
    taken: dict[str, str] = {}
    # In the order of `_FIXED`, so that a colour does not depend on which of its names is larger.
    for name in (each for each in _COLOUR_OF if each in ordered):
        shades = [each[_COLOUR_OF[name]] for each in (PALETTE, _LIGHTER, _DARKER)]
        free = [shade for shade in shades if shade not in taken.values()]
        if free:
            taken[name] = free[0]
    others = [colour for colour in PALETTE[:-1] if colour not in taken.values()]
    for name in ordered:
        if name not in taken:
            taken[name] = others.pop() if others else PALETTE[-1]
    return alt.Scale(domain=ordered, range=[taken[name] for name in ordered])


def by_colour(names: Sequence[str]) -> list[str]:
    """Return the names in the order of their colours, so that stacks of different charts agree."""
    return sorted(names, key=lambda name: (_COLOUR_OF.get(name, len(PALETTE) - 1), name))


def words(title: str | None = None) -> alt.Legend:
    """Build a legend that shows names in plain words: `directory entries`."""
    return alt.Legend(labelExpr="replace(datum.label, /_/g, ' ')", title=title)


def names_of(profiles: Sequence[str]) -> alt.Legend:
    """Build a legend of profiles, whose names often differ at their ends only: whole names, in as
    many columns as have room for them."""
    pixels = _LETTER * max(map(len, profiles), default=1) + 40
    columns = max(1, min(4, LARGE // pixels))
    return alt.Legend(
        title=None,
        labelLimit=_LONGEST_LABEL,
        columns=alt.ExprRef(f"{ROOM} < 420 ? 1 : {columns}"),
    )


def largest(table: pa.Table, column: str, value: str) -> list[str]:
    """Return the names of a column that get a colour each, the largest first; the last may be
    `OTHERS`."""
    sums = table.group_by(column).aggregate([(value, "sum")])
    order = sums.sort_by([(f"{value}_sum", "descending")])[column].to_pylist()
    return order if len(order) <= len(PALETTE) else [*order[: len(PALETTE) - 1], OTHERS]


def fewest(table: pa.Table, column: str, value: str, names: Sequence[str] = ()) -> pa.Table:
    """Combine all names of a column except the largest, or except `names`."""
    kept = set(names or largest(table, column, value))
    renamed = [name if name in kept else OTHERS for name in table[column].to_pylist()]
    place = table.column_names.index(column)
    few = table.set_column(place, column, pa.array(renamed, pa.string()))
    keys = [name for name in table.column_names if name != value]
    sums = few.group_by(keys, use_threads=False).aggregate([(value, "sum")])
    return sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names]).select(
        table.column_names
    )


def in_order(table: pa.Table, column: str) -> list[str]:
    """Return the names of a column in order of appearance; the remainder comes last."""
    names = list(dict.fromkeys(table[column].to_pylist()))
    return sorted(names, key=lambda name: name == OTHERS)
