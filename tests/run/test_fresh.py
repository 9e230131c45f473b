"""What went to places never written before, against an oracle that knows the requests, not the recording: one set of sectors, one sector at a time."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from tests.analyze.made import SECTOR, log_of

from fscost import capture
from fscost.capture import OPS, RecordedInterval
from fscost.lab.base import CellResult, Sample
from fscost.matrix import Cell
from fscost.profile.model import Profile
from fscost.run import fresh
from fscost.workload.model import Step, Workload

DISK_BYTES = 64 << 10
DISKS = ["main", "journal"]
WRITES = ("write", "write_zeroes")


@dataclass(frozen=True)
class Request:
    """As a disk received it, or a mark, which has a name alone."""

    op: str = "write"
    offset: int = 0
    length: int = SECTOR
    disk: str = "main"
    mark: str = ""


def expected(requests: Sequence[Request]) -> Counter[str]:
    """By interval."""
    phase, seen, found = "before", set(), Counter[str]()
    for request in requests:
        phase = request.mark or phase
        for at in range(request.offset, request.offset + request.length, SECTOR) if not request.mark and request.op in WRITES else ():
            found[phase] += SECTOR * ((request.disk, at) not in seen)
            seen.add((request.disk, at))
    return +found


def drawn(seed: int, ops: Sequence[str] = OPS, disks: Sequence[str] = DISKS) -> list[Request]:
    """Over a small disk, so that many overlap: some in a block, some over several, some the same again."""
    rng = random.Random(seed)
    requests = []
    for phase in ("", "mkfs", "write", "overwrite", "end"):
        requests += [Request(mark=phase)] if phase else []
        for _ in range(rng.randrange(40)):
            offset = rng.randrange(0, DISK_BYTES, SECTOR)
            length = min(rng.choice([SECTOR, 3 * SECTOR, 4096, 20480]), DISK_BYTES - offset)
            requests.append(Request(rng.choice(ops), offset, length, rng.choice(disks)))
    return requests


Given = Callable[[Sequence[Request]], Path]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """A recording of these requests as `capture` tells it, in batches of seven. Time stands still: only the order can tell one phase from another."""

    def batches(requests: Sequence[Request]) -> Iterator[pa.RecordBatch]:
        rows = [(event, request) for event, request in enumerate(requests) if not request.mark]
        for begin in range(0, len(rows), 7):
            events, some = zip(*rows[begin : begin + 7], strict=True)
            columns = {
                "event": pa.array(events, pa.uint64()),
                "complete_ns": pa.array([5] * len(some), pa.uint64()),
                "disk": pa.DictionaryArray.from_arrays([DISKS.index(request.disk) for request in some], DISKS),
                "op": pa.array([request.op for request in some]).dictionary_encode(),
                "offset": pa.array([request.offset for request in some], pa.uint64()),
                "length": pa.array([request.length for request in some], pa.uint64()),
            }
            yield pa.record_batch(columns)

    def give(requests: Sequence[Request]) -> Path:
        disks = [{"name": name, "size_bytes": DISK_BYTES} for name in DISKS]
        intervals = [RecordedInterval(name, 5, 5, {}) for name in ("before", *(request.mark for request in requests if request.mark))]
        monkeypatch.setattr(capture, "info", lambda recording: {"disks": disks})
        monkeypatch.setattr(capture, "intervals", lambda recording: intervals)
        monkeypatch.setattr(capture, "requests", lambda recording: batches(requests))
        return Path("nowhere")

    return give


def logged(requests: Sequence[Request], folder: Path) -> Path:
    """The recording that these writes make by way of a dm-log-writes log."""
    phases: dict[str, list[tuple[int, bytes] | tuple[int, bytes, int]]] = {}
    for request in requests:
        if request.mark:
            phases[request.mark] = []
        elif phases:
            phases[list(phases)[-1]].append((request.offset, b"\x5a" * request.length))
    (folder / "log").write_bytes(log_of(phases))
    capture.import_dm_log_writes(folder / "log", folder / "recording")
    return folder / "recording"


@pytest.mark.parametrize("seed", range(40))
def test_of_any_requests_on_two_disks(seed: int, given: Given) -> None:
    requests = drawn(seed)
    found = fresh.fresh_bytes(given(requests))
    assert found is not None
    assert +found == expected(requests)


@pytest.mark.parametrize("seed", range(5))
def test_of_a_real_recording(seed: int, tmp_path: Path) -> None:
    requests = drawn(seed, ops=["write"], disks=["main"])
    requests = requests[requests.index(Request(mark="mkfs")) :]
    found = fresh.fresh_bytes(logged(requests, tmp_path))
    assert found is not None
    assert +found == expected(requests)
    assert expected(requests)["mkfs"] > 0


@pytest.mark.parametrize(
    ("requests", "found"),
    [
        ([Request(length=4096), Request(length=4096)], 4096),
        ([Request(length=SECTOR), Request(offset=SECTOR)], 1024),
        ([Request(length=2048), Request(offset=1024, length=2048)], 3072),
        ([Request("write_zeroes", length=8192), Request(offset=4096, length=8192)], 12288),
        ([Request("discard", length=8192), Request("punch", length=8192), Request("read", length=8192), Request(length=4096)], 4096),
        ([Request(length=4096), Request("discard", length=4096), Request(length=4096)], 4096),
        ([Request(length=4096), Request(length=4096, disk="journal")], 8192),
        ([Request("flush", length=0)], 0),
        ([], 0),
    ],
    ids=[
        "again",
        "beside, in one block",
        "overlapping",
        "zeroes count",
        "only writes count",
        "a discard forgets nothing",
        "each disk",
        "flush",
        "none",
    ],
)
def test_cases(requests: list[Request], found: int, given: Given) -> None:
    assert fresh.fresh_bytes(given([Request(mark="work"), *requests])) == Counter({"work": found} if requests and found else {})


def a_result(*phases: str) -> CellResult:
    cell = Cell(Profile("ext4", "ext4"), Workload("w", (Step("work", "true"),)), 0, 7, 0)
    return CellResult(cell, "done", samples=[Sample(phase, phase != "mkfs", "", "device_write_bytes", "bytes", 1.0) for phase in phases])


def test_each_phase_has_a_sample_and_the_first_what_came_before_it(given: Given) -> None:
    requests = [Request(length=1024), Request(mark="mkfs"), Request(offset=1024), Request(mark="work"), Request(mark="end")]
    result = a_result("mkfs", "work")
    fresh.add_to(result, given(requests))
    assert result.samples[2:] == [
        Sample("mkfs", False, "", fresh.METRIC, "bytes", 1536.0),
        Sample("work", True, "", fresh.METRIC, "bytes", 0.0),
    ]


def test_nothing_is_said_of_what_cannot_be_read_or_remembered(given: Given, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = a_result("mkfs")
    (tmp_path / "no").write_bytes(b"recording")
    fresh.add_to(result, tmp_path / "no")
    large = given([Request(mark="mkfs"), Request()])
    monkeypatch.setattr(capture, "info", lambda recording: {"disks": [{"name": "main", "size_bytes": (1 << 38) + SECTOR}]})
    fresh.add_to(result, large)
    assert result.samples == a_result("mkfs").samples
