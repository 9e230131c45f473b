"""Benchmarks that need no further program run to their end. Their figures are not judged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


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


def test_report(tmp_path: Path) -> None:
    found = figures(tmp_path, "report", "--requests", "2000")
    assert found["requests"] == 2000
    assert found["bytes"] > 0
