"""Bytes written to places never written before, against an oracle that uses the requests, not the
recording: one set of sectors, one sector at a time."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.analyze.made import SECTOR, log_of

from fscost import capture
from fscost.capture import RecordedInterval
from fscost.lab.base import CellResult, Sample
from fscost.matrix import Cell
from fscost.profile.model import Profile
from fscost.run.after import first_writes
from fscost.workload.model import Step, Workload

DISK_BYTES = 64 << 10
DISKS = ["main", "journal"]
OPS = ("read", "write", "flush", "discard", "write_zeroes", "punch")
WRITES = ("write", "write_zeroes")


@dataclass(frozen=True)
class Request:
    """A request as a disk received it, or a mark, which has only a name."""

    op: str = "write"
    offset: int = 0
    length: int = SECTOR
    disk: str = "main"
    mark: str = ""


def expected(requests: Sequence[Request]) -> Counter[str]:
    """Return the bytes first written in each interval."""
    phase, seen, found = "before", set(), Counter[str]()
    for request in requests:
        phase = request.mark or phase
        for at in (
            range(request.offset, request.offset + request.length, SECTOR)
            if not request.mark and request.op in WRITES
            else ()
        ):
            found[phase] += SECTOR * ((request.disk, at) not in seen)
            seen.add((request.disk, at))
    return +found


def drawn(seed: int, ops: Sequence[str] = OPS, disks: Sequence[str] = DISKS) -> list[Request]:
    """Draw requests over a small disk, so that many overlap: some within a block, some over
    several, some identical."""
    rng = random.Random(seed)
    requests = []
    for phase in ("", "mkfs", "write", "overwrite", "end"):
        requests += [Request(mark=phase)] if phase else []
        for _ in range(rng.randrange(40)):
            offset = rng.randrange(0, DISK_BYTES, SECTOR)
            length = min(rng.choice([SECTOR, 3 * SECTOR, 4096, 20480]), DISK_BYTES - offset)
            requests.append(Request(rng.choice(ops), offset, length, rng.choice(disks)))
    return requests


def summed(requests: Sequence[Request]) -> list[RecordedInterval]:
    """Return the intervals of these requests, as a pass over a recording finds them."""
    names = ["before", *(request.mark for request in requests if request.mark)]
    found = expected(requests)
    return [RecordedInterval(name, 5, 5, {}, found[name]) for name in names]


def logged(requests: Sequence[Request], folder: Path) -> Path:
    """Return the recording that these writes produce through a dm-log-writes log."""
    phases: dict[str, list[tuple[int, bytes] | tuple[int, bytes, int]]] = {}
    for request in requests:
        if request.mark:
            phases[request.mark] = []
        elif phases:
            phases[list(phases)[-1]].append((request.offset, b"\x5a" * request.length))
    (folder / "log").write_bytes(log_of(phases))
    capture.import_dm_log_writes(folder / "log", folder / "recording")
    return folder / "recording"


@pytest.mark.parametrize("seed", range(5))
def test_of_a_real_recording(seed: int, tmp_path: Path) -> None:
    requests = drawn(seed, ops=["write"], disks=["main"])
    requests = requests[requests.index(Request(mark="mkfs")) :]
    found = first_writes.by_interval(capture.intervals(logged(requests, tmp_path)))
    assert +found == expected(requests)
    assert expected(requests)["mkfs"] > 0


def a_result(*phases: str) -> CellResult:
    cell = Cell(Profile("ext4", "ext4"), Workload("w", (Step("work", "true"),)), 0, 7, 0)
    return CellResult(
        cell,
        "done",
        samples=[
            Sample(phase, phase != "mkfs", "", "device_write_bytes", "bytes", 1.0)
            for phase in phases
        ],
    )


def test_each_phase_has_a_sample_and_the_first_what_came_before_it() -> None:
    requests = [
        Request(length=1024),
        Request(mark="mkfs"),
        Request(offset=1024),
        Request(mark="work"),
        Request(mark="end"),
    ]
    result = a_result("mkfs", "work")
    result.recorded = summed(requests)
    first_writes.add_to(result)
    assert result.samples[2:] == [
        Sample("mkfs", False, "", first_writes.METRIC, "bytes", 1536.0),
        Sample("work", True, "", first_writes.METRIC, "bytes", 0.0),
    ]


def test_nothing_is_said_of_a_cell_that_was_not_recorded() -> None:
    result = a_result("mkfs")
    first_writes.add_to(result)
    assert result.samples == a_result("mkfs").samples
