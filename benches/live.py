"""Time of a live run on a modelled disk beside the offline replay of the same requests, against the
issue's budget: within 5 % on a quiet machine. Needs root.

fio does each job twice on ext4: on the model, and on a disk without delay. The second recording is
then replayed on the model. The useful time of `fscost replay` is *in order* if the program waits
for each request, and *at least* if it keeps a queue (docs/time.md). Live times include the
processor time of this machine and its delays, so the load average is printed too, and the median
of several rounds counts.

Neither time includes what fio does before its first request and after its last one, which takes as
long as 3,000 reads of an SSD and differs by half between two runs. The recording has no time of a
reply, so the live time is that from the first request which a reply allowed to the last one, for as
many replies. The server keeps processors awake while it has a model; here, they stay awake for the
disk without delay, too, because its times between requests become part of the offline time.

A job is not judged if the disk without delay takes more than half of its time on the model: then
it measures this machine and its kernel, which no model contains.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import history  # beside this file
import pyarrow.parquet as pq

from fscost import capture, latency


@dataclass(frozen=True)
class Job:
    """A job for fio: its options, the number of requests in flight, and their operation."""

    words: str
    depth: int
    op: str


ROOT = Path(__file__).parents[1]
BUDGET = 0.05
CUT = ROOT / "target/release/examples/cut"
DISK = "256M"
FIO = "fio --name=j --filename=f --size=64M --bs=4k --direct=1 --randseed=3"
JOBS = {
    "reads, one at a time": Job("--rw=randread --ioengine=psync", 1, "read"),
    "writes, each with fdatasync": Job("--rw=randwrite --ioengine=psync --fdatasync=1", 1, "write"),
    "reads, 32 at a time": Job("--rw=randread --ioengine=libaio --iodepth=32", 32, "read"),
}


def main() -> int:
    """Print the times and their ratios; return 1 if one misses the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    parser.add_argument("models", nargs="*", default=["hdd-7200", "sata-ssd", "sd-a1"])
    asked = parser.parse_args()
    deepest = max(job.depth for job in JOBS.values())
    if asked.requests < deepest + 2:
        parser.error(
            f"--requests: at least {deepest + 2}, to fill the queue and wait for one reply"
        )
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "fscost-replay"]
    subprocess.run([*build, "--example", "cut"], cwd=ROOT, check=True)
    found = {}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'model, job':44}{'live':>9}{'offline':>9}{'no delay':>10}{'ratio':>8}")
    for model in asked.models:
        for name, job in JOBS.items():
            rounds = [measure(model, job, asked.requests) for _ in range(asked.rounds)]
            live_s, offline_s, path_s = map(statistics.median, zip(*rounds, strict=True))
            ratio = statistics.median(live / offline for live, offline, _ in rounds)
            found[f"{model}, {name}"] = {
                "live_s": live_s,
                "offline_s": offline_s,
                "path_s": path_s,
                "ratio": ratio,
            }
            times = f"{live_s:8.2f}s{offline_s:8.2f}s{path_s:9.3f}s{ratio:8.3f}"
            unjudged = "" if path_s * 2 <= live_s else "  not judged"
            print(f"{f'{model}, {name}':44}{times}{unjudged}", flush=True)
    history.append("live", found)
    missed = [
        name
        for name, each in found.items()
        if each["path_s"] * 2 <= each["live_s"] and abs(each["ratio"] - 1) > BUDGET
    ]
    print(f"budget: ratio within {BUDGET:.0%} of 1; missed: {', '.join(missed) or 'none'}")
    return int(bool(missed) and not asked.unjudged)


@contextmanager
def awake() -> Iterator[None]:
    """Keep idle processors awake (Documentation/power/pm_qos_interface.rst), where the kernel and
    the privileges of this process allow it, as the server does."""
    with ExitStack() as held:
        with suppress(OSError):
            limit = held.enter_context(Path("/dev/cpu_dma_latency").open("wb", buffering=0))
            limit.write(struct.pack("i", 0))
        yield


def measure(model: str, job: Job, requests: int) -> tuple[float, float, float]:
    """Return the seconds of the job's requests on the model, of their replay, and without delay."""
    command = f"{FIO} {job.words} --number_ios={requests}"
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        served = submitted(recorded(Path(name) / "live", model, command), job, requests)
        with awake():
            source = recorded(Path(name) / "ram", "ram", command)
        begin_ns, *_, end_ns = submitted(source, job, requests)
        cut = Path(name) / "job.fscost"
        subprocess.run([CUT, source, cut, str(begin_ns), str(end_ns)], check=True)
        replayed = latency.replay(cut, {"main": latency.find(model)}, measured=["run"])
    live_ns = (served[-1] - served[job.depth]) / (requests - 1 - job.depth)
    # In order, the last request has no part; without an order, nearly all have one.
    offline_s, count = (
        (replayed.closed_s, requests - 1) if job.depth == 1 else (replayed.least_s, requests)
    )
    path_s = (end_ns - begin_ns) / 1e9
    return live_ns / 1e9 * requests, offline_s / count * requests, path_s


def submitted(recording: Path, job: Job, requests: int) -> list[int]:
    """Return when the job's requests were submitted. The file system reads its metadata before the
    job reads, and writes blocks of its own, of 1 KiB, beside those of the job, of 4 KiB."""
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        table = Path(name) / "requests.parquet"
        _, intervals = capture.write_requests(recording, table)
        rows = pq.read_table(table, columns=["op", "length", "submit_ns"]).to_pylist()
    [run] = [each for each in intervals if each.name == "run"]
    own = [each["submit_ns"] for each in rows if (each["op"], each["length"]) == (job.op, 4096)]
    found = sorted(each for each in own if run.begin_ns <= each < run.end_ns)[-requests:]
    if len(found) != requests:
        raise SystemExit(f"{recording}: {len(found)} {job.op}s of 4 KiB, not {requests}")
    return found


def recorded(run: Path, model: str, command: str) -> Path:
    """Run the job on a model, and return its recording."""
    fscost = [
        str(Path(sys.executable).with_name("fscost")),
        "compare",
        "--on",
        "ext4",
        "--size",
        DISK,
        "--lab",
        "native",
        "-r",
        "1",
    ]
    fscost += ["--disk", f"main={model}", "--keep", "all", "--out", str(run), "--json"]
    laid_out = f"{FIO} --rw=write --number_ios=0 --create_only=1 --fallocate=none --overwrite=1"
    fscost += ["--prepare", f"{laid_out} >&2", "--", "sh", "-c", f"{command} >&2"]
    subprocess.run(fscost, check=True, capture_output=True)
    [cell] = json.loads((run / "manifest.json").read_text())["cells"]
    return run / str(cell["recording"])


if __name__ == "__main__":
    sys.exit(main())
