"""Charts from small tables."""

from typing import Any

import pyarrow as pa
import pytest
import vl_convert

from fscost.report import charts
from fscost.report.charts.style import PALETTE


def test_profiles_are_ordered_as_in_the_tables() -> None:
    """The order is by all bytes written, even if a profile lacks the largest cause, which comes
    first."""
    rows = [("b", "data", 9), ("c", "data", 10), ("a", "log", 3), ("b", "log", 4), ("c", "log", 1)]
    data = [dict(zip(("profile", "cause", "write_bytes"), row, strict=True)) for row in rows]
    drawn = charts.causes(pa.Table.from_pylist(data)).to_dict()
    assert drawn["encoding"]["y"]["sort"] == ["a", "c", "b"]
    assert drawn["encoding"]["color"]["scale"]["domain"] == ["data", "log"]


def test_profiles_that_wrote_the_same_keep_their_order() -> None:
    rows = [("a", 2), ("b", 3), ("c", 3), ("d", 3), ("e", 1)]
    data = [{"profile": name, "cause": "data", "write_bytes": size} for name, size in rows]
    drawn = charts.causes(pa.Table.from_pylist(data)).to_dict()
    assert drawn["encoding"]["y"]["sort"] == ["e", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("years", "unit", "end"),
    [
        (3.0, "years", 3.0),
        (2 / 365, "days", 2.0),
        (3 / 365 / 24, "hours", 3.0),
        (0.0, "minutes", 0),
    ],
)
def test_a_life_is_drawn_in_the_unit_that_fits(years: float, unit: str, end: float) -> None:
    rows = [{"profile": "a", "median": years, "low": None, "high": None}]
    schema = pa.schema(
        [("profile", pa.string()), *((name, pa.float64()) for name in ("median", "low", "high"))]
    )
    drawn = charts.measure(pa.Table.from_pylist(rows, schema), "years").to_dict()
    bars = drawn["layer"][0]["encoding"]["x"]
    assert bars["axis"]["title"] == unit
    assert bars["scale"]["domain"] == [0, pytest.approx(end)]


def test_a_name_has_one_colour_in_every_chart() -> None:
    """Data is blue and the journal red, whichever is larger; the stacks begin with the data."""

    def colour_of(drawn: Any, name: str) -> str:
        scale = drawn["encoding"]["color"]["scale"]
        return str(dict(zip(scale["domain"], scale["range"], strict=True))[name])

    def table(column: str, sizes: dict[str, int]) -> pa.Table:
        rows = [{"profile": "a", column: name, "write_bytes": size} for name, size in sizes.items()]
        return pa.Table.from_pylist(rows)

    several = {f"cause {number}": 100 - number for number in range(9)}
    by_cause = charts.causes(table("cause", {"log": 9000, **several, "data": 500})).to_dict()
    few = charts.causes(table("cause", {"data": 1, "directory_entries": 2, "log": 3})).to_dict()
    by_structure = charts.structures(table("structure", {"journal": 2, "file_data": 1})).to_dict()
    for drawn, data, log in (
        (by_cause, "data", "log"),
        (few, "data", "log"),
        (by_structure, "file_data", "journal"),
    ):
        assert colour_of(drawn, data) == PALETTE[0]
        assert colour_of(drawn, log) == PALETTE[1]
        assert drawn["encoding"]["color"]["scale"]["domain"][:2] == [data, log]
        colours = drawn["encoding"]["color"]["scale"]["range"]
        assert len(set(colours)) == len(colours)
    # Of several names of one kind, the same one has the pure colour in every chart, and the others
    # its shades.
    for log in (1, 100):
        sizes = {"file_data": 9, "log": log, "journal_copy": 8, "journal_commit": 7, "mmp": 5}
        drawn = charts.structures(table("structure", sizes)).to_dict()
        assert colour_of(drawn, "journal_copy") == PALETTE[1]
        assert colour_of(drawn, "log") == "#F7ACB5"
        assert colour_of(drawn, "journal_commit") == "#A33340"
        # Other kinds leave the colours of data, journal and metadata free.
        assert colour_of(drawn, "mmp") not in PALETTE[:3]
    both = charts.causes(table("cause", {"data": 9, "allocation": 1, "accounting": 5})).to_dict()
    assert (colour_of(both, "allocation"), colour_of(both, "accounting")) == (PALETTE[3], "#E6DE9F")


def test_phases_are_in_the_order_of_the_run() -> None:
    rows = [
        {"profile": "a", "phase": name, "measured": True, "write_bytes": 1.0}
        for name in ("unpack", "make")
    ]
    drawn = charts.phases(pa.Table.from_pylist(rows)).to_dict()
    assert drawn["encoding"]["color"]["scale"]["domain"] == ["unpack", "make"]


def test_an_interval_far_beyond_the_bars_ends_in_an_arrow() -> None:
    rows = [
        {"profile": "a", "median": 1.0, "low": 0.5, "high": 1.5},
        {"profile": "b", "median": 2.0, "low": 0.1, "high": 900.0},
    ]
    drawn = charts.measure(pa.Table.from_pylist(rows), "s").to_dict()
    bars, _, arrows = drawn["layer"]
    assert bars["encoding"]["x"]["scale"]["domain"] == [0, 4.0]
    assert {"filter": "datum.high > 4.0"} in arrows["transform"]


def test_offsets_of_a_block_map_are_told_apart() -> None:
    """Offsets have enough digits: three would print 1.88 GiB twice."""
    rows = [(0, 0), (20, 2_014_314_496), (40, 2_014_838_784), (60, 2_147_483_648)]
    known = {
        "disk": "main",
        "slice_begin_s": 0.0,
        "slice_end_s": 1.0,
        "area": "file data",
        "write_bytes": 4096,
    }
    data = [known | {"row": row, "offset_bytes": offset} for row, offset in rows]
    drawn = charts.block_map(pa.Table.from_pylist(data), []).to_dict()
    labels = drawn["layer"][0]["encoding"]["y"]["axis"]["labelExpr"]
    assert labels.count("1,921.00 MiB") == labels.count("1,921.50 MiB") == 1


def test_each_repetition_is_a_tick_beside_the_median() -> None:
    rows = [{"profile": "a", "median": 1.0, "low": 0.5, "high": 1.5}]
    rows.append({"profile": "b", "median": 2.0, "low": 1.0, "high": 900.0})
    values = {"a": [0.9, 1.0, 1.2], "b": [2.0, 700.0]}
    drawn = charts.measure(pa.Table.from_pylist(rows), "s", values).to_dict()
    _, _, ticks, _ = drawn["layer"]
    assert ticks["mark"]["type"] == "tick"
    shown = [
        (row["profile"], row["repetition"]) for row in drawn["datasets"][ticks["data"]["name"]]
    ]
    # The last one lies beyond the axis, which the arrow says.
    assert shown == [("a", 0.9), ("a", 1.0), ("a", 1.2), ("b", 2.0)]
    single = charts.measure(pa.Table.from_pylist(rows), "s", {"a": [1.0], "b": [2.0]}).to_dict()
    assert len(single["layer"]) == 3


def test_a_legend_of_profiles_has_whole_names() -> None:
    """Two were "ext4 -o noatime,commit…"."""
    names = [f"ext4 -o noatime,compress_algorithm=zstd:{level}" for level in (1, 2)]
    rows = [
        {"profile": name, "at_most_ns": at_most_ns, "requests": 2, "longer": longer}
        for name in names
        for at_most_ns, longer in ((1000, 1.0), (9000, 0.5), (90000, 0.1))
    ]
    spec = charts.themed(charts.latencies(pa.Table.from_pylist(rows)))
    drawn = vl_convert.vegalite_to_svg(spec)
    assert all(name in drawn for name in names)
    assert "…" not in drawn
