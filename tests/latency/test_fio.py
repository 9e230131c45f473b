"""fio measures on a served device what its model predicts: the ratio of both means, within one
run."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.calibrate.conftest import served_device
from tests.variants import some

from fscost import capture, latency
from fscost.lab.cell.completions import Completions

DISK_BYTES = 1 << 30
REPETITIONS = 4
DEEP = 32
KINDS = {
    "random-read": ("--rw=randread", "--ioengine=psync"),
    "deep-random-read": ("--rw=randread", "--ioengine=libaio", f"--iodepth={DEEP}"),
    "synced-write": ("--rw=randwrite", "--ioengine=psync", "--fdatasync=1"),
}
CASES = [
    ("hdd-7200", 40, "random-read", 8),
    ("hdd-7200", 8, "deep-random-read", 96),
    ("sata-ssd", 2500, "random-read", 8),
    ("sata-ssd", 1000, "deep-random-read", 128),
    ("sata-ssd", 500, "synced-write", 4),
    ("nvme", 4000, "random-read", 8),
    ("nvme", 4000, "deep-random-read", 256),
    ("sd-card", 250, "random-read", 8),
    ("sd-card", 250, "synced-write", 4),
    ("emmc", 900, "random-read", 8),
    ("emmc", 500, "synced-write", 4),
]
"""Model, slow-down factor, fio access pattern and request count. Requests take hundreds of
milliseconds, so scheduling delays of a busy machine are small beside them."""


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


def fio_us(kind: str, requests: int, device: Path, folder: Path) -> tuple[list[int], float]:
    """Return fio's mean time of a request and of the flush after it. For reads, also return their
    offsets. Deep reads drop the last requests: fio takes the end of all requests in flight for the
    end of each."""
    command = ["fio", "--name=test", f"--filename={device}", "--bs=4k", "--direct=1"]
    command += ["--allow_file_create=0", "--norandommap=1", "--randseed=1", f"--size={DISK_BYTES}"]
    command += [f"--write_lat_log={folder / 'log'}", "--log_offset=1", "--output-format=json"]
    command += [*KINDS[kind], f"--number_ios={requests}"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    [job] = json.loads(ended.stdout)["jobs"]
    if kind == "synced-write":
        assert job["write"]["total_ios"] == requests
        return [], float(job["write"]["lat_ns"]["mean"] + job["sync"]["lat_ns"]["mean"]) / 1e3
    log = np.loadtxt(folder / "log_lat.1.log", delimiter=",", dtype=np.int64)
    assert len(log) == requests
    if "deep" in kind:
        log = log[:-DEEP]
    return log[:, 4].tolist(), float(log[:, 1].mean()) / 1e3


def excess(folder: Path, text: str, kind: str, requests: int) -> float:
    """Return fio's mean time relative to the model's mean time of the same requests. The delay
    error that the server measured is subtracted."""
    folder.mkdir()
    with served_device(text, DISK_BYTES, folder) as node:
        places, fio_mean_us = fio_us(kind, requests, node, folder)
    out = folder / "requests.parquet"
    _, intervals = capture.write_requests(
        folder / "recording", out, Completions(folder / "completions")
    )
    [use] = [each for each in intervals if each.name == "use"]
    table = pq.read_table(out)
    table = table.filter(pc.greater_equal(table["submit_ns"], use.begin_ns))
    if places:
        table = table.filter(pc.is_in(table["offset"], pa.array(places, table["offset"].type)))
        assert table.num_rows == len(places)
    op, model_ns, late_ns = (
        np.array(table[name].to_pylist()) for name in ("op", "latency_ns", "late_ns")
    )
    ops = ("write", "flush") if kind == "synced-write" else ("read",)
    model_us, late_us = (
        sum(float(each[op == name].mean()) / 1e3 for name in ops) for each in (model_ns, late_ns)
    )
    return (fio_mean_us - late_us) / model_us


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(("name", "times", "kind", "requests"), some(CASES, 2))
def test_fio_measures_what_the_model_says(
    tmp_path: Path, name: str, times: int, kind: str, requests: int
) -> None:
    """The minimum of some repetitions is compared: a busy machine only adds time."""
    text = slow(latency.find(name), times)
    found: list[float] = []
    while len(found) < REPETITIONS and not (found and 0.99 < min(found) < 1.03):
        found.append(excess(tmp_path / str(len(found)), text, kind, requests))
    assert 0.99 < min(found) < 1.03, found
