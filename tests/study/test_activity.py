"""The chart of a disk's activity."""

import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

from fscost.report.activity import keep, svg
from fscost.results import CELLS


def table(*rows: tuple[int, str, int, int]) -> pa.Table:
    names = ("submit_ns", "op", "offset", "length")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def marks(picture: str, op: str) -> list[tuple[int, ...]]:
    root = ElementTree.fromstring(picture)
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        if path.get("class") == op:
            found = re.findall(r"M(\d+) (\d+)[Vv](\d+)", path.get("d") or "")
            return [tuple(map(int, each)) for each in found]
    return []


def test_requests_lie_at_their_time_and_offset() -> None:
    mib = 1 << 20
    picture = svg(
        table(
            (0, "write", 0, mib),
            (500_000_000, "write", mib, mib),
            (10**9, "write", 2 * mib, 2 * mib),
        ),
        "p",
    )
    (x0, low0, high0), (x1, low1, high1), (x2, low2, high2) = marks(picture, "write")
    assert x1 - x0 == x2 - x1
    assert low0 > high0 == low1 - 1 > high1 == low2 - 1 > high2, "the picture's y grows downwards"
    assert abs((low2 - high2) - 2 * (low1 - high1)) <= 2


def test_requests_of_one_pixel_are_one_mark() -> None:
    rows = [(number, "write", 0, 4096) for number in range(1000)]
    assert len(marks(svg(table(*rows, (10**9, "flush", 0, 0)), "p"), "write")) == 1


def test_flushes_are_below_the_axis_and_the_title_is_escaped() -> None:
    picture = svg(table((0, "write", 0, 4096), (10, "flush", 0, 0)), "a<b & c")
    [(_, at, _)] = marks(picture, "flush")
    assert at > max(low for _, low, _ in marks(picture, "write"))
    assert "a&lt;b &amp; c" in picture


def test_only_measured_requests_of_the_disk_are_drawn(tmp_path: Path) -> None:
    cell = tmp_path / CELLS / "ext4.0"
    cell.mkdir(parents=True)
    rows = [(5, "write", 0, 4096, "journal"), (15, "write", 4096, 4096, "journal")]
    rows += [(16, "write", 0, 4096, "main"), (25, "write", 0, 4096, "journal")]
    names = ("submit_ns", "op", "offset", "length", "disk")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    pq.write_table(pa.table(columns), cell / "requests.parquet")
    facts = {"measured_span_ns": [10, 20], "device_models": {"journal": "sata-ssd"}}
    record = SimpleNamespace(profile="ext4 -J", cell="ext4.0", facts=facts)
    results = SimpleNamespace(folder=tmp_path, manifest=SimpleNamespace(done=[record, record]))
    made = keep(results)  # type: ignore[arg-type]
    assert [path.name for path in made] == ["ext4.0.parquet", "ext4.0.svg"]
    assert pq.read_table(made[0])["submit_ns"].to_pylist() == [15]
    assert "ext4 -J: disk journal, timed as sata-ssd" in made[1].read_text()
