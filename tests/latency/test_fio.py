"""fio measures on a served device what its model predicts. One request after the other: each takes
as long as the device says, and no longer than from the reply before it to the request after it.
Many at once: the ratio of both means, within one run."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.calibrate.conftest import served_device
from tests.variants import some

from fscost import capture, latency

DISK_BYTES = 1 << 30
REPETITIONS = 12
DEEP = 32
KINDS = {
    "random-read": ("--rw=randread", "--ioengine=psync"),
    "deep-random-read": ("--rw=randread", "--ioengine=libaio", f"--iodepth={DEEP}"),
    "synced-write": ("--rw=randwrite", "--ioengine=psync", "--fdatasync=1"),
}
CASES = [
    ("hdd-7200", 40, "random-read", 8),
    ("sata-ssd", 2500, "random-read", 8),
    ("sata-ssd", 500, "synced-write", 4),
    ("nvme", 4000, "random-read", 8),
    ("sd-card", 250, "random-read", 8),
    ("sd-card", 250, "synced-write", 4),
    ("emmc", 900, "random-read", 8),
    ("emmc", 500, "synced-write", 4),
]
"""Model, slow-down factor, fio access pattern and request count."""
DEEP_CASES = [
    ("hdd-7200", 8, "deep-random-read", 96),
    ("sata-ssd", 1000, "deep-random-read", 128),
    ("nvme", 4000, "deep-random-read", 256),
]
"""Cases with many requests at once. Requests take hundreds of milliseconds, so scheduling delays of
a busy machine are small beside them."""


def slow(model: latency.Model, times: int) -> str:
    """Return the model slowed down by a factor."""
    lines = ["[latency]"]
    for name, given in model.values.items():
        if name.endswith("_us"):
            value = given * times
        elif name == "rpm":
            value = given / times
        elif name.endswith("_bytes_per_s"):
            value = max(given // times, 100_000)
        else:
            value = given
        spelled = f'"{value}"' if isinstance(value, str) else str(value).lower()
        lines.append(f"{name} = {spelled}")
    return "\n".join([*lines, ""])


@dataclass
class Fio:
    """fio's reads or writes in the order in which they ended, and its flushes after them."""

    offsets: list[int]
    latencies_ns: list[int]
    flushes: int
    flush_mean_ns: float


@dataclass
class Request:
    """A request as its device served it."""

    op: str
    offset: int
    begin_ns: int
    end_ns: int
    model_ns: int


def measured(kind: str, requests: int, device: Path, folder: Path) -> Fio:
    command = ["fio", "--name=test", f"--filename={device}", "--bs=4k", "--direct=1"]
    command += ["--allow_file_create=0", "--norandommap=1", "--randseed=1", f"--size={DISK_BYTES}"]
    command += [f"--write_lat_log={folder / 'log'}", "--log_offset=1", "--output-format=json"]
    command += ["--clocksource=clock_gettime", *KINDS[kind], f"--number_ios={requests}"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    [job] = json.loads(ended.stdout)["jobs"]
    log = np.loadtxt(folder / "log_lat.1.log", delimiter=",", dtype=np.int64)
    assert len(log) == requests
    # fio does not log flushes, nor does it flush after the last write.
    sync = job["sync"]
    return Fio(log[:, 4].tolist(), log[:, 1].tolist(), sync["lat_ns"]["N"], sync["lat_ns"]["mean"])


def served(
    folder: Path, text: str, kind: str, requests: int
) -> tuple[Fio, list[Request], tuple[int, int]]:
    """Return what fio measured on a disk of this model, the requests that the disk served in their
    order, and the begin and end of the time in which it did."""
    folder.mkdir()
    with served_device(text, DISK_BYTES, folder) as node:
        fio = measured(kind, requests, node, folder)
    out = folder / "requests.parquet"
    _, intervals = capture.write_requests(folder / "recording", out)
    [use] = [each for each in intervals if each.name == "use"]
    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    places = set(fio.offsets)
    found = [
        Request(
            row["op"],
            row["offset"],
            row["submit_ns"],
            row["submit_ns"] + row["latency_ns"] + row["late_ns"],
            row["latency_ns"],
        )
        for row in rows
        if row["submit_ns"] >= use.begin_ns and (row["op"] == "flush" or row["offset"] in places)
    ]
    return fio, sorted(found, key=lambda each: each.begin_ns), (use.begin_ns, use.end_ns)


def check_each(fio: Fio, rows: list[Request], begin_ns: int, end_ns: int) -> None:
    """Check that fio may have measured each of its times, which followed one another."""
    before_ns = [begin_ns, *(row.end_ns for row in rows)]
    after_ns = [*(row.begin_ns for row in rows[1:]), end_ns]
    bounds = [
        (row, row.end_ns - row.begin_ns, after - before)
        for row, before, after in zip(rows, before_ns, after_ns, strict=False)
    ]
    own = [bound for bound in bounds if bound[0].op != "flush"]
    assert [row.offset for row, _, _ in own] == fio.offsets
    for (_, least, most), found in zip(own, fio.latencies_ns, strict=True):
        assert least <= found <= most
    # Each is after a write; the end of fio may bring another flush.
    flushes = [
        bound
        for bound, last in zip(bounds[1:], rows, strict=False)
        if bound[0].op == "flush" and last.op != "flush"
    ][: fio.flushes]
    assert len(flushes) == fio.flushes
    if flushes:
        least, most = (fmean(bound[number] for bound in flushes) for number in (1, 2))
        assert least - 1 <= fio.flush_mean_ns <= most + 1, "rounded to nanoseconds"


def excess(fio: Fio, rows: list[Request]) -> float:
    """Return fio's mean time relative to the model's mean time of the same requests. The delay
    error that the server measured is subtracted. The last requests are left out: fio takes the end
    of all requests in flight for the end of each."""
    places = set(fio.offsets[:-DEEP])
    of_same = [row for row in rows if row.offset in places]
    assert len(of_same) == len(fio.offsets) - DEEP
    model_ns = fmean(row.model_ns for row in of_same)
    late_ns = fmean(row.end_ns - row.begin_ns for row in of_same) - model_ns
    return (fmean(fio.latencies_ns[:-DEEP]) - late_ns) / model_ns


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(("name", "times", "kind", "requests"), some(CASES, 2))
def test_fio_measures_what_the_model_says(
    tmp_path: Path, name: str, times: int, kind: str, requests: int
) -> None:
    text = slow(latency.find(name), times)
    fio, rows, (begin_ns, end_ns) = served(tmp_path / "0", text, kind, requests)
    assert fio.flushes == (requests - 1 if kind == "synced-write" else 0)
    check_each(fio, rows, begin_ns, end_ns)


@pytest.mark.root
@pytest.mark.long
@pytest.mark.parametrize(("name", "times", "kind", "requests"), DEEP_CASES)
def test_fio_measures_many_requests_at_once(
    tmp_path: Path, name: str, times: int, kind: str, requests: int
) -> None:
    """The minimum of some repetitions is compared, because a busy machine only adds time."""
    text = slow(latency.find(name), times)
    found: list[float] = []
    while len(found) < REPETITIONS and not (found and 0.99 < min(found) < 1.03):
        fio, rows, _ = served(tmp_path / str(len(found)), text, kind, requests)
        found.append(excess(fio, rows))
    assert 0.99 < min(found) < 1.03, found
