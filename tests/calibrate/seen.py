"""The latencies that fio must have measured on a served device, taken from the device's own
recording. A busy host delays both alike, so a test may compare them at any load. The model's own
times are there, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from fscost import capture
from fscost.calibrate.fio import SMALL_BYTES, Answer

LARGE = 1 << 19
"""Minimum length in bytes of the pieces of a large request."""
TOLERATED = 0.03

Row = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """Requests of a fio job. For each, the time of the reply before it and of the request after
    it."""

    rows: Sequence[Row]
    before_ns: Sequence[int]
    after_ns: Sequence[int]

    def latency_us(self, *, mean: bool = False) -> tuple[float, float]:
        """Return the lowest and the highest median or mean that fio may have measured at queue
        depth 1. Each request took fio at least the server's time, and at most the time from the
        reply before it to the request after it. A mean is at most the job's whole time divided by
        its requests."""
        if mean:
            least = fmean(_reply_ns(row) - row["submit_ns"] for row in self.rows)
            most = (self.after_ns[-1] - self.before_ns[0]) / len(self.rows)
        else:
            least = median(_reply_ns(row) - row["submit_ns"] for row in self.rows)
            most = median(
                after - before for before, after in zip(self.before_ns, self.after_ns, strict=True)
            )
        return least / 1e3 * (1 - TOLERATED), most / 1e3 * (1 + TOLERATED)

    def modelled(self) -> Answer:
        """Return the answer of the model alone, independent of the host."""
        latencies = [row["latency_ns"] / 1e3 for row in self.rows]
        return Answer(median(latencies), fmean(latencies), 1, median(latencies))

    def bytes_per_s(self, *, settled: bool = False) -> tuple[float, float]:
        """Return the lowest and the highest throughput that fio may have measured: of all intervals
        that begin in the first fifth and end in the last fifth of the job, or of its second half.
        fio's interval is not known. A stall of the host may lie before its first request or after
        its last reply, between the jobs before and after it."""
        rows, begun_ns = self.rows, self.before_ns[0]
        if settled:
            middle = (rows[0]["submit_ns"] + rows[-1]["submit_ns"]) // 2
            rows, begun_ns = [row for row in rows if row["submit_ns"] >= middle], middle
        replies = sorted((_reply_ns(row), row["length"]) for row in rows)
        times = np.array([rows[0]["submit_ns"]] + [at for at, _ in replies], float)
        done = np.cumsum([0] + [length for _, length in replies])
        fifth = max(1, len(times) // 5)
        took_ns = times[-fifth:] - times[:fifth, None]
        rates = (done[-fifth:] - done[:fifth, None]) / took_ns * 1e9
        stalled = done[-1] / (self.after_ns[-1] - begun_ns) * 1e9
        return float(min(rates.min(), stalled)), float(rates.max())


def _reply_ns(row: Row) -> int:
    return int(row["submit_ns"] + row["latency_ns"] + row["late_ns"])


def requests(folder: Path, ended_unix_ns: int) -> list[Row]:
    """Return the requests of the disk served there, by submission time. The last row, an operation
    `end`, stands for the end of the program that made them."""
    table = folder / "seen.parquet"
    capture.write_requests(folder / "recording", table)
    rows: list[Row] = pq.read_table(table).to_pylist()
    ended_ns = ended_unix_ns - capture.info(folder / "recording")["begin_unix_ns"]
    end = {"op": "end", "offset": 0, "length": 0, "submit_ns": ended_ns}
    return [*sorted(rows, key=lambda row: row["submit_ns"]), end]


def seen(rows: list[Row], first: int, end: int, op: str = "") -> Seen:
    """Return the requests of an operation within a range."""
    chosen = [at for at in range(first, end) if rows[at]["op"].startswith(op)]
    # Something precedes every job but perhaps the first.
    chosen = [at for at in chosen if 0 < at < len(rows) - 1]
    return Seen(
        [rows[at] for at in chosen],
        [_reply_ns(rows[at - 1]) for at in chosen],
        [rows[at + 1]["submit_ns"] for at in chosen],
    )


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
