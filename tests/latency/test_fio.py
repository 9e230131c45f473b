"""fio measures on a served device what its model says: the ratio of both means, within one run."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.calibrate.conftest import served_device

from fscost import capture, latency
from fscost.calibrate.fio import OF_FLASH, WRITES, Answer, Job, measure
from fscost.lab.cell.completions import Completions

SECONDS = 0.7
REPETITIONS = 3
DISK_BYTES = 1 << 30
JOBS = {job.name: job for job in (*OF_FLASH, *WRITES)}
CASES = [
    ("sata-ssd", 500, "random-read"),
    ("nvme", 1000, "random-read"),
    ("sata-ssd", 500, "synced-write"),
]
"""Model, so many times slower, and what fio does."""


def slow(model: latency.Model, times: int) -> str:
    """The model in slow motion."""
    lines = ["[latency]"]
    for name, given in model.values.items():
        if name.endswith("_us"):
            value = given * times
        elif name.endswith("_bytes_per_s"):
            value = max(given // times, 100_000)
        else:
            value = given
        spelled = f'"{value}"' if isinstance(value, str) else str(value).lower()
        lines.append(f"{name} = {spelled}")
    return "\n".join([*lines, ""])


def measured(folder: Path, text: str, job: Job) -> tuple[Answer, dict[str, float]]:
    """fio's answer, and the model's mean microseconds of each kind of request."""
    folder.mkdir()
    with served_device(text, DISK_BYTES, folder) as node:
        [answer] = measure([job], node, DISK_BYTES, SECONDS, lambda _: None).values()
    out = folder / "requests.parquet"
    _, intervals = capture.write_requests(
        folder / "recording", out, Completions(folder / "completions")
    )
    [use] = [each for each in intervals if each.name == "use"]
    table = pq.read_table(out)
    table = table.filter(pc.greater_equal(table["submit_ns"], use.begin_ns))
    op, latency_ns = (np.array(table[name].to_pylist()) for name in ("op", "latency_ns"))
    return answer, {name: float(latency_ns[op == name].mean()) / 1e3 for name in set(op)}


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(("name", "times", "job"), CASES)
def test_fio_measures_what_the_model_says(tmp_path: Path, name: str, times: int, job: str) -> None:
    """The least of some repetitions: a busy machine only adds."""
    text = slow(latency.find(name), times)
    ratios: dict[str, list[float]] = {}
    for each in range(REPETITIONS):
        answer, model_us = measured(tmp_path / str(each), text, JOBS[job])
        op = "write" if job == "synced-write" else "read"
        ratios.setdefault(op, []).append(answer.mean_us / model_us[op])
        if op == "write":
            ratios.setdefault("flush", []).append(answer.sync_mean_us / model_us["flush"])
    for op, found in ratios.items():
        assert 0.99 < min(found) < 1.03, (op, found)
