"""When a guest's promises were made: its workload counts requests, and the recording has them."""

import struct
from pathlib import Path

import pytest
from tests.recordings import DISCARD, FLUSH, WRITE, ZEROES, Body, write

from fscost.crash.placed import made
from fscost.crash.workloads import COMMAND
from fscost.errors import InputError

REQUESTS = (
    (WRITE, 4096, 10),
    (FLUSH, 0, 20),
    (ZEROES, 8192, 30),
    (DISCARD, 8192, 35),
    (FLUSH, 0, 40),
    (WRITE, 512, 50),
)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    events, end = [], 0
    for op, length, at_ns in REQUESTS:
        place = end if op == WRITE else 0
        events.append(struct.pack("<QQQQIHBB", at_ns - 5, at_ns, 0, length, place, 0, op, 0))
        end += length if op == WRITE else 0
    return write(tmp_path / "recording", [(1, Body(events, bytes(end)))])


@pytest.mark.parametrize(
    ("counts", "at_ns"),
    [("0,0,0", 0), ("8,0,0", 10), ("8,0,1", 20), ("9,0,1", 30), ("24,16,1", 35), ("25,16,2", 50)],
)
def test_a_promise_is_made_when_its_disks_have_completed_what_they_counted(
    recording: Path, counts: str, at_ns: int
) -> None:
    said = f"noise\nkept 2114380812016094826 log 3 disk0={counts}\nkept 1 log\n"
    assert made(recording, "files", [], said) == ([(at_ns, "log", 3)], 0, 0)


def test_counts_that_the_recording_lacks_are_refused(recording: Path) -> None:
    with pytest.raises(InputError, match="fewer requests"):
        made(recording, "files", [], "kept 1 log 1 disk0=26,0,0")


@pytest.mark.parametrize("workload", ["files", COMMAND])
def test_without_counts_an_emulated_guest_has_no_times(recording: Path, workload: str) -> None:
    said = "kept 1 log 1 disk0=8,0,0" if workload == COMMAND else "kept 1 log 1"
    with pytest.raises(InputError, match="another one"):
        made(recording, workload, [], said)
