"""Charts from small tables."""

import pyarrow as pa

from fscost.report import charts


def test_profiles_are_ordered_as_in_the_tables() -> None:
    """The order is by all bytes written, even if a profile lacks the largest cause, which comes
    first."""
    rows = [("b", "data", 9), ("c", "data", 10), ("a", "log", 3), ("b", "log", 4), ("c", "log", 1)]
    data = [dict(zip(("profile", "cause", "write_bytes"), row, strict=True)) for row in rows]
    drawn = charts.causes(pa.Table.from_pylist(data)).to_dict()
    assert drawn["encoding"]["y"]["sort"] == ["a", "c", "b"]
    assert drawn["encoding"]["color"]["scale"]["domain"] == ["data", "log"]


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
