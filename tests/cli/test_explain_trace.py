"""`explain` of another tool's trace: what its requests say without contents."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
TRACE = """fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda write 0 4096
/dev/sda write 4096 4096
/dev/sda write 1048576 8192
/dev/sda sync 0 0
/dev/sda write 0 4096
/dev/sda trim 2097152 1048576
/dev/sda read 0 4096
/dev/sdb add
/dev/sdb open
/dev/sdb write 0 512
/dev/sda wait 2500 0
/dev/sda close
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.fio"
    path.write_text(TRACE)
    return path


def test_every_number_of_a_trace(fscost: Run, trace: Path) -> None:
    found = json.loads(fscost("explain", str(trace), "--json").stdout)
    assert (found["schema"], found["format"]) == ("fscost-explain-trace-1", "fio")
    assert found["duration_s"] == 0.0025
    first, second = found["disks"]
    assert first == {
        "name": "/dev/sda",
        "read_requests": 1,
        "read_bytes": 4096,
        "write_requests": 4,
        "write_bytes": 20480,
        "discard_requests": 1,
        "discard_bytes": 1 << 20,
        "zero_requests": 0,
        "zero_bytes": 0,
        "flushes": 1,
        "fua_writes": 0,
        "sequential_write_bytes": 4096,
        "again_write_bytes": 4096,
        "distinct_write_bytes": 16384,
        "touched_write_bytes": 20480,
        "write_sizes": [
            {"up_to_bytes": 4096, "requests": 3, "bytes": 12288},
            {"up_to_bytes": 8192, "requests": 1, "bytes": 8192},
        ],
    }
    assert (second["name"], second["write_bytes"]) == ("/dev/sdb", 512)


def test_the_answer_in_words(fscost: Run, trace: Path) -> None:
    said = fscost("explain", trace.name, "--top", "1", columns=80).stdout
    assert said.startswith("t.fio: fio trace; 20.5 KiB written by 5 requests in 2.50 ms\n")
    assert "/dev/sda  20.0 KiB         4    20.0 %  20.0 %" in said
    assert "(1 more)     512 B" in said
    joined = " ".join(said.split())
    assert "20.0 KiB in all, written 1.20 times on average" in joined
    assert "one flush for each 20.5 KiB written" in joined
    assert "a trace has no contents" in joined


def test_blocks_are_written_at_least_once(fscost: Run, trace: Path) -> None:
    """Nine writes of 512 B to eight blocks were "written 0.14 times on average"."""
    writes = [f"/f write {block * 4096} 512" for block in (*range(8), 0)]
    trace.write_text("\n".join(["fio version 2 iolog", "/f add", "/f open", *writes, ""]))
    said = " ".join(fscost("explain", trace.name).stdout.split())
    assert "32.0 KiB in all, written 1.12 times on average" in said


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--by", "file"], "--by needs a recording"),
        (["--at", "1"], "--at needs a recording"),
        (["--ssd", "sata-ssd"], "--ssd needs a recording"),
        (["--format", "msr"], "line 1"),
        (["--format", "fio", "other"], "--format is about one trace"),
    ],
)
def test_what_needs_contents_is_refused(
    fscost: Run, trace: Path, options: list[str], cause: str
) -> None:
    said = fscost("explain", str(trace), *options, check=(2,)).stderr
    assert cause in said


def test_a_file_of_no_known_format_is_no_recording(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one two three\n")
    assert "be a recording" in fscost("explain", "text", check=(2,)).stderr


def test_a_damaged_trace_is_told_by_its_line(fscost: Run, trace: Path) -> None:
    trace.write_text(TRACE + "/dev/sda write x 4096\n")
    assert "line 16" in fscost("explain", str(trace), check=(2,)).stderr


def test_a_disk_s_name_cannot_reach_the_terminal(fscost: Run, trace: Path) -> None:
    trace.write_text(TRACE.replace("/dev/sda", "/dev/s\x1b[2Ja"))
    said = fscost("explain", str(trace))
    assert "\x1b" not in said.stdout + said.stderr
