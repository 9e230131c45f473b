"""What a disk held at an instant: by hand, where each byte's fate is known, and of a log that the kernel's target might have written."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from fscost import analyze, capture
from fscost.analyze import Explanation, Instant
from fscost.analyze.instant import _Requests, _Rows
from fscost.errors import InputError

from .made import BLOCK, FLUSH, FUA, explanation, log_of, row


def batch(*requests: tuple[str, int, int, bool]) -> pa.RecordBatch:
    """Of operation, submission, completion and FUA."""
    ops, submit, complete, fua = (list(column) for column in zip(*requests, strict=True))
    count = len(requests)
    columns = {
        "event": pa.array(complete, pa.uint64()),
        "submit_ns": pa.array(submit, pa.uint64()),
        "complete_ns": pa.array(complete, pa.uint64()),
        "disk": pa.array(["main"] * count).dictionary_encode(),
        "op": pa.array(ops).dictionary_encode(),
        "offset": pa.array([0] * count, pa.uint64()),
        "length": pa.array([BLOCK] * count, pa.uint64()),
        "fua": pa.array(fua),
    }
    return pa.record_batch(columns)


WRITES = [
    ("write", 1, 10, False),
    ("write", 2, 20, False),  # Completes after the flush was submitted: that flush does not cover it.
    ("flush", 15, 30, False),
    ("write", 31, 40, True),
    ("read", 41, 45, False),
    ("discard", 41, 46, False),
    ("write_zeroes", 41, 50, False),
    ("flush", 49, 70, False),  # Not completed yet at 60.
    ("write", 55, 80, False),
    ("write", 90, 95, False),
]


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize(
    ("instant", "volatile"), [(9, []), (29, [10, 20]), (30, [20]), (60, [20, 50]), (70, [50]), (94, [50, 80]), (95, [50, 80, 95])]
)
def test_durable_is_what_completed_before_a_completed_flush_was_submitted(at: int, instant: int, volatile: list[int]) -> None:
    """However the requests are cut into batches."""
    requests = _Requests(instant, 2)
    for part in (WRITES[:at], WRITES[at:]):
        requests.add(batch(*part))
    assert requests.volatile_events().tolist() == volatile


def test_requests_before_under_way_and_after_are_listed() -> None:
    for cut in range(1, len(WRITES)):
        requests = _Requests(60, 2)
        for part in (WRITES[:cut], WRITES[cut:]):
            requests.add(batch(*part))
        assert [each.complete_ns for each in requests.before] == [46, 50]
        assert [each.complete_ns for each in requests.under_way] == [70, 80]
        assert [each.complete_ns for each in requests.after] == [95]
        assert requests.last_flush_ns == 30


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """A disk without a file system: flushed A, then B, and C by FUA, then the mark `later` and D."""
    a, b, c, d = (bytes([number]) * BLOCK for number in b"ABCD")
    phases = {"work": [(0, a), (0, b"", FLUSH), (BLOCK, b), (2 * BLOCK, c, FUA)], "later": [(3 * BLOCK, d)]}
    log, out = tmp_path / "log", tmp_path / "recording"
    log.write_bytes(log_of(phases))
    capture.import_dm_log_writes(log, out)
    return out


def instant_of(recording: Path, at: str, count: int = 9) -> Instant:
    return analyze.at(recording, analyze.explain(recording), at, count)


def test_an_instant_of_a_recording(logged: Path) -> None:
    found = instant_of(logged, "later")
    assert (found.phase, found.phase_written, found.written_bytes) == ("later", [], 3 * BLOCK)
    assert (found.volatile_bytes, found.volatile_requests) == (BLOCK, 1)
    assert [each.offset for each in found.before] == [0, 0, BLOCK, 2 * BLOCK]
    assert [(each.offset, each.length, each.structure) for each in found.after] == [(3 * BLOCK, BLOCK, "unknown")]
    assert [each.op for each in instant_of(logged, "later", 1).before] == ["write"]
    assert instant_of(logged, "0").phase == "work"
    assert instant_of(logged, "100").volatile_bytes == 2 * BLOCK
    assert json.loads(json.dumps(found.json()))["volatile_bytes"] == BLOCK


@pytest.mark.parametrize("at", ["never", "-1", "nan", "inf", "1e99", ""])
def test_what_is_no_instant_is_an_error_that_names_the_marks(logged: Path, at: str) -> None:
    with pytest.raises(InputError, match="work, later"):
        instant_of(logged, at)


@pytest.mark.parametrize(("structures", "volatile", "state"), [(1, [], "being written"), (2, [], "durable"), (2, [2], "complete")])
def test_a_transaction_is_being_written_until_its_commit_block_is_there(structures: int, volatile: list[int], state: str) -> None:
    rows = [
        row("journal_commit", transaction=6),
        row("journal_descriptor", transaction=7),
        row("journal_commit", transaction=7),
        # In place, for a transaction of long ago.
        row("inode_table", transaction=5),
    ]
    whole: Explanation = explanation([*rows[: 1 + structures], rows[3]])
    events = pa.array(volatile, pa.int64()).to_numpy()
    found = _Rows(10**18, events, set())
    whole.prepare([], found)
    running = found.running(events)
    assert running is not None
    assert (running.number, running.state, running.bytes) == (7, state, structures * BLOCK)
