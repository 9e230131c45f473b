"""`--disk NAME=MODEL` on real kernels. Times are asserted as ratios within one run only."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fscost import capture

Run = Callable[..., Any]
WRITES = "for i in 1 2 3 4; do echo hi >$i; sync $i; done"
FIO = (
    "fio --name=r --filename=file --size=4M --bs=4k --direct=1 --ioengine=libaio"
    " --output-format=json --clocksource=clock_gettime"
)


def model(folder: Path, name: str, **latencies_us: int) -> str:
    path = folder / f"{name}.toml"
    fields = [f"{field} = {us}" for field, us in latencies_us.items()]
    path.write_text("\n".join(["[latency]", 'model = "constant"', *fields, ""]))
    return str(path)


def rows_of(ended: Any) -> dict[tuple[str, str, str], float]:
    rows = json.loads(ended.stdout)["rows"]
    return {
        (row["profile"], row["disk"], row["metric"]): row["median"]
        for row in rows
        if row["phase"] == "total"
    }


@pytest.mark.root
def test_a_run_shows_the_times_of_each_modelled_disk(fscost: Run, tmp_path: Path) -> None:
    slow = model(tmp_path, "slow", write_us=4000, flush_us=9000)
    fast = model(tmp_path, "fast", write_us=500, flush_us=700)
    profile = "ext4 -J device={disk.journal}"
    arguments = ["compare", "--on", profile, "--on", "ext4", "--size", "64M", "--out", "run"]
    arguments += ["--disk", f"main={slow}", "--disk", f"journal={fast},size=16M"]
    arguments += ["--max-repetitions", "1", "--lab", "native", "--by-disk", "--json"]
    found = rows_of(fscost(*arguments, "--", "sh", "-c", WRITES))
    assert found[profile, "main", "write_latency_ns_p50"] == 4e6
    assert found[profile, "journal", "flush_latency_ns_p99"] == 7e5
    assert found["ext4", "", "write_latency_ns_p99"] == 4e6
    assert 0 < found["ext4", "", "device_utilisation"] <= 1
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    disks = manifest["profiles"][0]["disks"]
    assert [(disk["model"], disk["size_bytes"]) for disk in disks] == [(slow, 0), (fast, 16 << 20)]
    assert "write_us = 4000" in manifest["options"]["device_models"][slow]
    cell = next((tmp_path / "run/cells").glob("ext4.0"))
    table = pq.read_table(cell / "requests.parquet")
    assert {"offset", "length", "latency_ns", "late_ns", "submit_ns", "disk"} <= set(
        table.schema.names
    )
    assert sorted(each.name for each in cell.iterdir()) == [
        "output.log",
        "recording.fscost",
        "requests.parquet",
        "timeline.parquet",
    ]
    shown = fscost("show", "run", columns=120).stdout
    assert re.search(r"journal: fast +– +500 µs, 500 µs +700 µs, 700 µs", shown)
    assert "main timed as slow" in " ".join(shown.split())


@pytest.mark.root
def test_without_models_nothing_is_said_of_them(fscost: Run) -> None:
    arguments = ["compare", "--on", "ext4", "--size", "64M", "--max-repetitions", "1"]
    arguments += ["--disk", "main=ram", "--lab", "native", "--out", "run"]
    shown = fscost(*arguments, "--", "sh", "-c", WRITES).stdout
    assert "Modelled disks" not in shown
    of_models = ("read_latency", "write_latency", "flush_latency", "least_wall")
    found = rows_of(fscost("show", "run", "--json"))
    assert not any(metric.startswith(of_models) for *_, metric in found)


@pytest.mark.root
@pytest.mark.slow
def test_fio_measures_what_the_model_says(fscost: Run, tmp_path: Path) -> None:
    """fio's minimum of 40 requests lies between the model's latency and the shortest time from the
    reply before a request to the request after it."""
    profiles = {
        us: f"ext4 --disk main={model(tmp_path, f'm{us}', read_us=us)}" for us in (10_000, 20_000)
    }
    arguments = ["compare", "--size", "64M", "--lab", "native", "--keep", "all", "--out", "run"]
    for profile in profiles.values():
        arguments += ["--on", profile]
    arguments += ["--max-repetitions", "1"]
    prepare = f"{FIO} --rw=write >/dev/null"
    command = f"{FIO} --rw=randread --iodepth=1 --number_ios=40"
    fscost(*arguments, "--prepare", prepare, "--", "sh", "-c", command)
    cells = json.loads((tmp_path / "run/manifest.json").read_text())["cells"]
    for us, profile in profiles.items():
        [cell] = [cell for cell in cells if cell["profile"] == profile]
        output = tmp_path / "run" / cell["output"]
        text = output.read_text()
        job = json.loads(text[text.rindex("=== run") :].partition("\n")[2])["jobs"][0]
        rows = reads_of_data(output.parent, "run")
        assert len(rows) == 40
        assert {row["latency_ns"] for row in rows} == {us * 1000}
        replies = [row["submit_ns"] + row["latency_ns"] + row["late_ns"] for row in rows]
        most_ns = min(
            after["submit_ns"] - before_ns
            for before_ns, after in zip(replies, rows[2:], strict=False)
        )
        assert us * 1000 <= job["read"]["lat_ns"]["min"] <= most_ns


def reads_of_data(cell: Path, phase: str) -> list[dict[str, Any]]:
    """Return the phase's reads of places that were written with 4 KiB, as fio did, in order."""
    [begin_ns] = [
        each.begin_ns for each in capture.intervals(cell / "recording.fscost") if each.name == phase
    ]
    rows = pq.read_table(cell / "requests.parquet").to_pylist()
    written = {row["offset"] for row in rows if (row["op"], row["length"]) == ("write", 4096)}
    reads = [
        row
        for row in rows
        if row["op"] == "read" and row["offset"] in written and row["submit_ns"] >= begin_ns
    ]
    return sorted(reads, key=lambda row: row["submit_ns"])


@pytest.mark.root
def test_requests_of_a_native_disk_wait_side_by_side(fscost: Run, tmp_path: Path) -> None:
    """The loop driver passes asynchronous direct I/O on without waiting for earlier requests."""
    slow = model(tmp_path, "slow", write_us=200_000)
    arguments = ["compare", "--on", "ext4", "--size", "64M", "--lab", "native", "--out", "run"]
    arguments += ["--disk", f"main={slow}", "--max-repetitions", "1", "--json"]
    command = f"{FIO} --rw=randwrite --iodepth=32 --number_ios=128"
    prepare = "head -c 4M /dev/zero > file; sync -f ."
    found = rows_of(fscost(*arguments, "--prepare", prepare, "--", "sh", "-c", command))
    # fio submits 32, but a busy machine may take longer than 200 ms for that.
    assert found["ext4", "", "queue_depth_max"] >= 8
