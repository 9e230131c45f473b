"""The programs that examine states: forks of one, each with a socket of its own."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import write

from fscost.crash import programs

JOB = {"at_ns": 5, "kept": [], "without": [], "kept_promises": {}}


@pytest.fixture
def about(tmp_path: Path) -> dict[str, Any]:
    """Describe an empty disk; none of its states mounts."""
    recording = write(tmp_path / "recording", [], size=64 << 20)
    (tmp_path / "folder").mkdir()
    return {
        "recording": str(recording),
        "folder": str(tmp_path / "folder"),
        "disk_server": "",
        "workload": "files",
        "type": "ext4",
        "options": "",
        "disks": [{"name": "main", "size_bytes": 64 << 20}],
        "device": "reorder-4k",
    }


def children() -> list[int]:
    """Return the programs that run below this one."""
    found, waiting = [], [os.getpid()]
    while waiting:
        parent = waiting.pop()
        own = Path(f"/proc/{parent}/task/{parent}/children")
        below = [int(each) for each in own.read_text().split()] if own.exists() else []
        found += below
        waiting += below
    return found


@pytest.mark.root
def test_one_program_ends_and_the_others_go_on(about: dict[str, Any]) -> None:
    with programs._programs(about, 2) as [first, second]:
        first.settimeout(60)
        with first, first.makefile("rw") as lines:
            lines.write("no job\n")
            lines.flush()
            assert lines.readline() == ""
        with second, second.makefile("rw") as lines:
            for _ in range(2):
                assert programs._asked(lines, JOB)["mounts"] is False
    assert children() == []


@pytest.mark.root
def test_all_programs_end_with_the_first(about: dict[str, Any]) -> None:
    with programs._programs(about, 2) as sockets:
        with sockets[0].makefile("rw") as lines:
            programs._asked(lines, JOB)
        server, *forks = children()
        assert len(forks) == 2
        os.kill(server, signal.SIGKILL)
        for each in sockets:
            each.settimeout(60)
            assert each.recv(1) == b""
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{each}").exists() for each in forks):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.root
def test_each_job_is_answered_once(about: dict[str, Any], tmp_path: Path) -> None:
    examine = programs.here(tmp_path / "folder", Path("unused"))
    jobs = [{**JOB, "at_ns": at_ns} for at_ns in range(9)]
    found: dict[int, dict[str, Any]] = {}
    examine(about, jobs, found.__setitem__)
    assert sorted(found) == list(range(9))
    assert [each["mounts"] for each in found.values()] == [False] * 9
    assert json.dumps(found)
    assert children() == []
