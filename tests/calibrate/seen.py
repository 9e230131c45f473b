"""The latencies that fio must have measured on a served device, taken from the device's own
recording. A busy host delays both alike, so a test may compare them at any load. The model's own
times are there, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pyarrow.parquet as pq

from fscost import capture
from fscost.calibrate.fio import SMALL_BYTES, Answer
from fscost.lab.cell.completions import Completions

LARGE = 1 << 19
"""Minimum length in bytes of the pieces of a large request."""
TOLERATED = 0.03

Row = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """Requests of a fio job, and the time of each following request."""

    rows: Sequence[Row]
    next_ns: Sequence[int]

    def holds(self, us: float, *, mean: bool = False) -> bool:
        """True if fio may have measured this latency at queue depth 1: at least the server's time,
        and at most the time until the next request."""
        average = fmean if mean else median
        took = average(row["latency_ns"] + row["late_ns"] for row in self.rows)
        cycle = average(
            after - row["submit_ns"] for row, after in zip(self.rows, self.next_ns, strict=True)
        )
        return took * (1 - TOLERATED) <= us * 1e3 <= cycle * (1 + TOLERATED)

    def modelled(self) -> Answer:
        """Return the answer of the model alone, independent of the host."""
        latencies = [row["latency_ns"] / 1e3 for row in self.rows]
        return Answer(median(latencies), fmean(latencies), 1, median(latencies), fmean(latencies))

    def bytes_per_s(self, *, settled: bool = False, ends: bool = False) -> float:
        """Return the throughput of the middle of the job, or of the middle of its second half. The
        ends, left out by default, may contain requests of other programs that probe the device."""
        rows = self.rows
        if settled:
            middle = (rows[0]["submit_ns"] + rows[-1]["submit_ns"]) / 2
            rows = [row for row in rows if row["submit_ns"] >= middle]
        replies = sorted(
            (row["submit_ns"] + row["latency_ns"] + row["late_ns"], row["length"]) for row in rows
        )
        end = 0 if ends else len(replies) // 10
        replies = replies[end : len(replies) - end]
        took_ns = replies[-1][0] - replies[0][0]
        return float(sum(length for _, length in replies[1:]) / took_ns * 1e9)


def requests(folder: Path) -> list[Row]:
    """Return the requests of the disk served there, by submission time."""
    table = folder / "seen.parquet"
    capture.write_requests(folder / "recording", table, Completions(folder / "completions"))
    rows: list[Row] = pq.read_table(table).to_pylist()
    return sorted(rows, key=lambda row: row["submit_ns"])


def seen(rows: list[Row], first: int, end: int, op: str = "") -> Seen:
    """Return the requests of an operation within a range."""
    chosen = [at for at in range(first, end) if rows[at]["op"].startswith(op)]
    following = [rows[min(at + 1, len(rows) - 1)]["submit_ns"] for at in chosen]
    # The request after the last one belongs to another job.
    return Seen([rows[at] for at in chosen[:-1]], following[:-1])


def flash_jobs(rows: list[Row]) -> dict[str, Seen]:
    """Return the jobs of `fscost calibrate --write --kind flash`, told apart by their requests."""
    is_large = [row["length"] >= LARGE for row in rows]
    ops = [row["op"] for row in rows]
    large = [at for at, op in enumerate(ops) if op == "read" and is_large[at]]
    first = large[0]
    while first > 0 and ops[first - 1] == "read" and rows[first - 1]["length"] == SMALL_BYTES:
        first -= 1
    writes = [at for at, op in enumerate(ops) if op == "write"]
    synced = next(at for at in range(writes[0], len(rows)) if ops[at] == "flush")
    written = [at for at in writes if is_large[at]]
    discards = [at for at, op in enumerate(ops) if op in ("punch", "discard")]
    return {
        "random-read": seen(rows, first, large[0]),
        "sequential-read": seen(rows, large[0], large[-1] + 1),
        "deep-random-read": seen(rows, large[-1] + 1, writes[0]),
        "random-write": seen(rows, writes[0], synced - 1),
        "synced-write": seen(rows, synced, written[0], "flush"),
        "sequential-write": seen(rows, written[0], written[-1] + 1, "write"),
        "discard": seen(rows, discards[0], discards[-1] + 1),
    }


def hard_disk_jobs(rows: list[Row], size_bytes: int) -> dict[str, Seen]:
    """Return the jobs of `fscost calibrate --kind hard-disk`."""
    large = [at for at, row in enumerate(rows) if row["length"] >= LARGE]
    inner = next(at for at in large if rows[at]["offset"] > size_bytes // 2)
    same = large[0] - 1
    while rows[same - 1]["offset"] == rows[same]["offset"]:
        same -= 1
    short = same
    while rows[short - 1]["offset"] < size_bytes // 100:
        short -= 1
    first = next(at for at, row in enumerate(rows) if row["op"] == "read")
    return {
        "random-read": seen(rows, first, short),
        "short-random-read": seen(rows, short, same),
        "same-read": seen(rows, same, large[0]),
        "outer-read": seen(rows, large[0], inner),
        "inner-read": seen(rows, inner, large[-1] + 1),
    }
