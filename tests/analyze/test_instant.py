"""A disk's contents at an instant: in hand-made requests, where each byte's fate is known, and in a
log as the kernel's target might write it."""

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from fscost import analyze, capture
from fscost.analyze import BtrfsRecovery, Explanation, Instant, XfsRecovery
from fscost.analyze.instant import _Requests, _Rows
from fscost.cli.output import instant as output
from fscost.errors import InputError

from .made import BLOCK, FLUSH, FUA, changes, explanation, log_of, row


def batch(*requests: tuple[str, int, int, bool]) -> pa.RecordBatch:
    """Return a batch of requests: operation, submission, completion and FUA. Which of them are
    durable is tested in crates/crash/tests/states.rs."""
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
        "latency_ns": pa.array([None] * count, pa.uint64()),
    }
    return pa.record_batch(columns)


WRITES = [
    ("write", 1, 10, False),
    (
        "write",
        2,
        20,
        False,
    ),  # Completes after the flush was submitted: the flush does not cover it.
    ("flush", 15, 30, False),
    ("write", 31, 40, True),
    ("read", 41, 45, False),
    ("discard", 41, 46, False),
    ("write_zeroes", 41, 50, False),
    ("flush", 49, 70, False),  # Not completed yet at 60.
    ("write", 55, 80, False),
    ("write", 90, 95, False),
]


def test_requests_before_under_way_and_after_are_listed() -> None:
    for cut in range(1, len(WRITES)):
        requests = _Requests(60, 2)
        for part in (WRITES[:cut], WRITES[cut:]):
            requests.add(batch(*part))
        assert [each.complete_ns for each in requests.before] == [46, 50]
        assert [each.complete_ns for each in requests.under_way] == [70, 80]
        assert [each.complete_ns for each in requests.after] == [95]
        assert requests.last_flush_ns == 30


def test_no_request_is_listed_before_or_after_if_none_is_asked_for() -> None:
    requests = _Requests(60, 0)
    for part in (WRITES[:3], WRITES[3:]):
        requests.add(batch(*part))
    assert (requests.before, requests.after) == ([], [])
    assert [each.complete_ns for each in requests.under_way] == [70, 80]
    assert requests.last_flush_ns == 30


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """Return a recording of a disk without a file system: A, flushed, then B, and C by FUA, then
    the mark `later` and D."""
    a, b, c, d = (bytes([number]) * BLOCK for number in b"ABCD")
    phases = {
        "work": [(0, a), (0, b"", FLUSH), (BLOCK, b), (2 * BLOCK, c, FUA)],
        "later": [(3 * BLOCK, d)],
    }
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
    assert [(each.offset, each.length, each.structure) for each in found.after] == [
        (3 * BLOCK, BLOCK, "unknown")
    ]
    assert [each.op for each in instant_of(logged, "later", 1).before] == ["write"]
    assert instant_of(logged, "0").phase == "work"
    assert instant_of(logged, "100").volatile_bytes == 2 * BLOCK
    assert json.loads(json.dumps(found.json()))["volatile_bytes"] == BLOCK


@pytest.mark.parametrize("at", ["never", "-1", "nan", "inf", "1e99", ""])
def test_what_is_no_instant_is_an_error_that_names_the_marks(logged: Path, at: str) -> None:
    with pytest.raises(InputError, match="work, later"):
        instant_of(logged, at)


@pytest.mark.parametrize(
    ("structures", "volatile", "state"),
    [(1, [], "being written"), (2, [], "durable"), (2, [2], "complete")],
)
def test_a_transaction_is_being_written_until_its_commit_block_is_there(
    structures: int, volatile: list[int], state: str
) -> None:
    rows = [
        row("journal_commit", transaction=6),
        row("journal_descriptor", transaction=7),
        row("journal_commit", transaction=7),
        # In place, for a transaction long past.
        row("inode_table", transaction=5),
    ]
    whole: Explanation = explanation([*rows[: 1 + structures], rows[3]])
    events = pa.array(volatile, pa.int64()).to_numpy()
    found = _Rows(10**18, events, set())
    whole.prepare([], found)
    running = found.running()
    assert running is not None
    assert (running.number, running.state, running.bytes) == (7, state, structures * BLOCK)


LAP = 1 << 32


def log_between(tail: int, head: int, *replayed: int, unfinished: int = 0) -> XfsRecovery:
    return XfsRecovery(
        tail, head, 2, 8192, 5, frozenset(replayed), frozenset({unfinished} if unfinished else ())
    )


def newest(
    family: str,
    rows: list[dict[str, object]],
    whole: BtrfsRecovery | XfsRecovery,
    durable: BtrfsRecovery | XfsRecovery,
) -> _Rows:
    found = _Rows(10**18, pa.array([], pa.int64()).to_numpy(), set(), whole)
    explanation(rows, family).prepare([], found)
    return found


@pytest.mark.parametrize(
    ("whole", "durable", "state"),
    [
        (
            log_between(LAP, LAP + 20, LAP, unfinished=LAP + 16),
            log_between(LAP, LAP + 20, LAP, unfinished=LAP + 16),
            "being written",
        ),
        (log_between(LAP, LAP + 30, LAP, LAP + 16), log_between(LAP, LAP + 16, LAP), "complete"),
        (
            log_between(LAP, LAP + 30, LAP, LAP + 16),
            log_between(LAP, LAP + 30, LAP, LAP + 16),
            "durable",
        ),
        # Unmounted: the checkpoint lies before the tail.
        (log_between(LAP + 40, LAP + 40), log_between(LAP + 40, LAP + 40), "durable"),
    ],
)
def test_a_checkpoint_is_complete_once_a_mount_would_replay_it(
    whole: XfsRecovery, durable: XfsRecovery, state: str
) -> None:
    rows = [
        row("log", "agf", transaction=LAP),
        row("log", "agi", transaction=LAP + 16),
        row("log", transaction=LAP + 18),
    ]
    running = newest("xfs", rows, whole, durable).running(durable)
    assert running is not None
    assert (running.unit, running.name, running.bytes, running.state) == (
        "checkpoint",
        "1:16",
        BLOCK,
        state,
    )


@pytest.mark.parametrize(
    ("whole", "durable", "state"), [(7, 7, "being written"), (8, 7, "complete"), (8, 8, "durable")]
)
def test_a_commit_is_complete_once_a_superblock_leads_to_it(
    whole: int, durable: int, state: str
) -> None:
    rows = [
        row("fs_tree", transaction=7),
        row("superblock", transaction=7),
        row("file_data"),
        row("log_tree", transaction=8),
        row("superblock", transaction=7),
        row("fs_tree", transaction=8),
        row("file_data"),
        row("log_tree", transaction=8, length=2 * BLOCK),
    ]
    most, least = (BtrfsRecovery(generation, True, 0, []) for generation in (whole, durable))
    found = newest("btrfs", rows, most, least)
    running = found.running(least)
    assert running is not None
    assert (running.unit, running.name, running.bytes, running.state) == (
        "commit",
        "8",
        BLOCK,
        state,
    )
    assert found.behind_superblock() == [
        ("log_tree", 2 * BLOCK),
        ("file_data", BLOCK),
        *([("fs_tree", BLOCK)] if whole == 7 else []),
    ]


def test_what_a_mount_would_begin_with_is_told_with_and_without_what_is_not_durable(
    tmp_path: Path,
) -> None:
    """The image is a btrfs with a superblock of another generation that points nowhere and is not
    flushed."""
    image = tmp_path / "image"
    image.touch()
    subprocess.run(["truncate", "-s", "120M", image], check=True)
    subprocess.run(["mkfs.btrfs", "-q", "-m", "single", image], check=True)
    made = image.read_bytes()
    at, generation = 64 << 10, int.from_bytes(made[(64 << 10) + 0x48 :][:8], "little")
    later = bytearray(made[at : at + BLOCK])
    later[0x48:0x50] = (generation + 1).to_bytes(8, "little")
    log, recording = tmp_path / "log", tmp_path / "recording"
    phases = {
        "mkfs": [*changes(bytes(len(made)), made), (0, b"", FLUSH)],
        "mount": [(at, bytes(later))],
        "end": [],
    }
    log.write_bytes(log_of(phases))
    capture.import_dm_log_writes(log, recording)
    found = instant_of(recording, "end")
    assert found.recovery == BtrfsRecovery(generation + 1, False, 0, [])
    assert found.durable_recovery == BtrfsRecovery(generation, True, 0, [])
    text = "\n".join(output.lines(found, "title", None))
    assert f"commit {generation + 1}, whose root tree is missing" in text
    assert (
        f"If only durable data survives: a mount would continue from commit {generation},"
        " no log tree" in text
    )
    assert json.loads(json.dumps(found.json()))["durable_recovery"]["generation"] == generation


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (log_between(LAP + 8, LAP + 8), "a mount would replay nothing: the log is clean at 1:8"),
        (
            log_between(LAP, LAP + 30, LAP, unfinished=LAP + 16),
            (
                "a mount would replay 1 checkpoint (5 items): the log from 1:0 to 1:30, 8.00 KiB in"
                " 2 records; 1 more has no commit record yet"
            ),
        ),
    ],
)
def test_a_log_is_told_in_its_own_words(state: XfsRecovery, told: str) -> None:
    assert output.recovery(state) == told
