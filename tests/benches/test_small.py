"""Benchmarks that need no further program run to their end. Their figures are not judged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
compiles = pytest.mark.long
"""Marks a benchmark that compiles an optimised example first: minutes on an empty target folder."""
TIMES = {"wall_s", "first_s", "cpu_s"}


def figures(folder: Path, bench: str, *words: str) -> Any:
    """Run a benchmark small, and return the figures that it keeps, in this folder."""
    ended = subprocess.run(
        [sys.executable, ROOT / f"benches/{bench}.py", *words],
        env=os.environ | {"FSCOST_BENCH_RESULTS": str(folder)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [line] = (folder / "history.jsonl").read_text().splitlines()
    return json.loads(line)["figures"]


@pytest.mark.root
def test_overhead(tmp_path: Path) -> None:
    words = ("--pairs", "1", "--only", "fsync-log", "--scale", "0.01")
    [phase] = figures(tmp_path, "overhead", *words)
    assert phase["phase"] == "append"
    assert set(phase["wall_s"]) == {"plain", "recorded"}
    assert phase["requests"] > 0
    assert phase["server_peak_bytes"] > 0


@pytest.mark.root
def test_crash(tmp_path: Path) -> None:
    words = ("ext4", "--cuts", "2", "--states", "100", "--unjudged")
    found = figures(tmp_path, "crash", *words)
    assert found["examined"]["ext4"]["states"] > 0
    assert 0 < found["enumerated"]["states"] <= 100


@pytest.mark.root
def test_pages(tmp_path: Path) -> None:
    words = ("--profiles", "2", "--scale", "0.01", "--runs", "1", "--unjudged")
    found = figures(tmp_path, "pages", *words)
    assert found["profiles"] == 2
    assert len(found["commands"]) == 3
    assert all(each["cpu_s"] > 0 for each in found["commands"].values())


def test_report(tmp_path: Path) -> None:
    found = figures(tmp_path, "report", "--requests", "2000")
    assert found["requests"] == 2000
    assert found["bytes"] > 0


def test_start(tmp_path: Path) -> None:
    found = figures(tmp_path, "start", "--runs", "1", "--unjudged", "--before", str(ROOT))
    assert set(found) == {"compare --help", "show RUN"}
    for each in found.values():
        assert set(each) == {"cpu_s", "libraries_s", "before_s", "target"}
        assert each["libraries_s"] > 0


def test_store(tmp_path: Path) -> None:
    found = figures(tmp_path, "store", "--cells", "50", "--run-cells", "30", "--runs", "1")
    assert found["cells"] == 50
    assert found["peak_bytes"] > 0
    assert found["run"]["cells"] == 30
    assert all(found["run"][part]["peak_bytes"] > 0 for part in ("half", "whole"))


@pytest.mark.root
@pytest.mark.slow
def test_explain(tmp_path: Path) -> None:
    found = figures(tmp_path, "explain", "--runs", "1", "--share", "0.005")
    assert set(found["help"]) == TIMES
    assert [line["name"] for line in found["recordings"]] == ["btrfs", "ext4", "xfs", "xfs-small"]
    for line in found["recordings"]:
        assert all(set(line[each]) == TIMES for each in ("explain", "parquet", "export", "copy"))
        assert line["bytes"] > 0
        assert line["requests"] > 0


@pytest.mark.root
def test_delays(tmp_path: Path) -> None:
    words = ("--requests", "20", "--rounds", "1", "--unjudged", "constant 100 us")
    found = figures(tmp_path, "delays", *words)
    assert set(found) == {"gaps_share", "wake_p99_ns", "target_us", "cost", "models"}
    [model] = found["models"].values()
    assert len(model["late_us"]) == 3


@pytest.mark.root
@pytest.mark.long
def test_live(tmp_path: Path) -> None:
    words = ("--requests", "40", "--rounds", "1", "--unjudged", "sata-ssd")
    found = figures(tmp_path, "live", *words)
    assert len(found) == 3
    assert all(set(each) == {"live_s", "offline_s", "path_s", "ratio"} for each in found.values())
    assert all(each["offline_s"] > 0 for each in found.values())


def test_lives(tmp_path: Path) -> None:
    found = figures(tmp_path, "lives", "--writes", "500", "--unjudged", "sd-card-a1-32gb")
    assert set(found) == {"sd-card-a1-32gb"}
    [figure] = found.values()
    assert figure["modelled_bytes"] > 31e9
    assert figure["write_amplification"] >= 1


@pytest.mark.guest
@pytest.mark.slow
def test_vm(tmp_path: Path) -> None:
    found = figures(tmp_path, "vm", "--cells", "1")
    assert set(found) == {"restored", "booted"}
    for how in found.values():
        assert all(len(how[each]) == 1 for each in ("cell_s", "virtual_s"))
        assert how["peak_bytes"] > 0


@compiles
def test_wear(tmp_path: Path) -> None:
    found = figures(tmp_path, "wear", "1", "--unjudged")
    speeds = {f"{kind}, {how}" for kind in ("random", "extents") for how in ("plain", "charged")}
    assert set(found["patterns"]) == speeds
    assert all(each["unit_bytes"] > 0 for each in found["patterns"].values())


@compiles
def test_raid(tmp_path: Path) -> None:
    found = figures(tmp_path, "raid", "raid0", "--unjudged")
    assert set(found) == {"raid0 3"}
    assert set(found["raid0 3"]) == {"random", "sequential"}


@compiles
def test_traces(tmp_path: Path) -> None:
    found = figures(tmp_path, "traces", "blktrace", "dm-log-writes", "--chunks", "1", "--unjudged")
    assert set(found) == {"blktrace", "dm-log-writes"}
    assert all(set(each) == {"lines_per_s", "megabytes_per_s"} for each in found.values())


@compiles
def test_replay(tmp_path: Path) -> None:
    found = figures(tmp_path, "replay", "--requests", "2000", "--runs", "1", "--unjudged")
    assert "ram" in found
    assert all(set(each) == {"reading", "flushes", "all", "command"} for each in found.values())


@compiles
@pytest.mark.root
def test_classify(tmp_path: Path) -> None:
    words = ("--only", "fsync-log", "--share", "0.02", "--runs", "1")
    found = figures(tmp_path, "classify", *words)
    assert [line["family"] for line in found] == ["btrfs", "ext", "xfs"]
    for line in found:
        assert line["name"] == "fsync-log"
        assert line["requests"] > 0
        assert line["content_bytes"] > 0
        assert line["rows"] > 0
        assert {"classifier_cpu_s", "whole_cpu_s", "peak_bytes", "blkparse_cpu_s"} <= set(line)
