"""The treemap's rectangles: areas are bytes, nothing overlaps."""

from itertools import combinations

import pyarrow as pa
import pytest

from fscost.report.charts import tree


def spec(rows: list[tuple[str, str, str, int]]) -> list[dict[str, float]]:
    names = ("directory", "name", "kind", "write_bytes")
    data = [dict(zip(names, row, strict=True), files=1) for row in rows]
    chart = tree(pa.Table.from_pylist(data)).to_dict()
    return list(chart["datasets"][chart["layer"][0]["data"]["name"]])


def test_areas_are_bytes_and_do_not_overlap() -> None:
    rows = [(f"d{n % 5}/", f"f{n}", "data", 1 << (10 + n % 7)) for n in range(100)]
    areas = spec(rows)
    assert len(areas) == len(rows)
    for one, other in combinations(areas, 2):
        is_apart = (
            one["right"] <= other["left"] + 0.2
            or other["right"] <= one["left"] + 0.2
            or one["bottom"] <= other["top"] + 0.2
            or other["bottom"] <= one["top"] + 0.2
        )
        assert is_apart, (one, other)
    sizes = {row[1]: row[3] for row in rows}
    inside = [each for each in areas if each["directory"] == "d0/"]
    area = {
        each["name"]: (each["right"] - each["left"]) * (each["bottom"] - each["top"])
        for each in inside
    }
    share = sum(area.values()) / sum(sizes[name] for name in area)
    largest = max(area, key=lambda name: sizes[name])
    assert area[largest] == pytest.approx(share * sizes[largest], rel=0.05)


def test_nothing_was_written() -> None:
    assert len(spec([("/", "f", "data", 0)])) <= 1
