"""`fscost compare` and `fscost explain` count the same bytes of the same run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

ONCE = ("--max-repetitions", "1", "--on", "ext4 -o strictatime", "--out", "run")


def compared(fscost: Run) -> tuple[int, set[str]]:
    """Return the total, and the phases that it covers."""
    rows = [
        row
        for row in json.loads(fscost("show", "run", "--json").stdout)["rows"]
        if row["metric"] == "device_write_bytes"
    ]
    [total] = [row for row in rows if row["phase"] == "total"]
    return int(total["median"]), {row["phase"] for row in rows if row["measured"]} - {"total"}


@pytest.mark.root
@pytest.mark.parametrize(
    "workload",
    [
        ("--workload", "read-all", "--scale", "0.05"),
        ("--workload", "small-files", "--scale", "0.02"),
        (
            "--prepare",
            "mkdir d; for i in 1 2 3 4 5 6 7 8; do cp /etc/passwd d/$i; done",
            "--size",
            "16M",
            "--",
            "sh",
            "-c",
            "cat d/* | wc -c",
        ),
        (
            "--prepare",
            "echo a > a",
            "--prepare",
            "echo b > b",
            "--settle",
            "none",
            "--size",
            "16M",
            "--",
            "dd",
            "if=/dev/zero",
            "of=c",
            "bs=64k",
            "count=9",
        ),
    ],
    ids=["read-all", "small-files", "prepare", "two-prepares-unsettled"],
)
def test_totals_are_equal(fscost: Run, workload: tuple[str, ...], tmp_path: Path) -> None:
    fscost("compare", *ONCE, *workload)
    total, measured = compared(fscost)
    [recording] = tmp_path.glob("run/cells/*/recording.fscost")
    of_run = json.loads(fscost("explain", "run", "--json").stdout)["recordings"][0]
    of_recording = json.loads(fscost("explain", str(recording), "--json").stdout)
    fscost("recording", "strip", str(recording), "stripped")
    of_stripped = json.loads(fscost("explain", "stripped", "--json").stdout)
    for found in (of_run, of_recording, of_stripped):
        assert found["write_bytes"] == total
        assert set(found["phases"]) == measured
    everything = json.loads(fscost("explain", str(recording), "--all", "--json").stdout)
    assert everything["write_bytes"] > total
    assert "mkfs" in everything["phases"]
