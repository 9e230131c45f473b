"""Time of a live run on a modelled disk beside the offline replay of the same requests, against the
issue's budget: within 5 % on a quiet machine. Needs root.

fio does each job twice on ext4: on the model, and on a disk without delay. The second recording is
then replayed on the model. The useful time of `fscost replay` is *in order* if the program waits
for each request, and *at least* if it keeps a queue (docs/time.md). Live times include the
processor time of this machine and its delays, so the load average is printed too, and the median
of several rounds counts.

Both times begin with the job's first request: fio takes 0.3 s to start, which differs by a third
between two runs on a busy machine, and is as long as 3,000 reads of an SSD. A live request also
wakes the program, which slept meanwhile; the last column shows that time and other delays.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import history  # beside this file
import pyarrow.parquet as pq

from fscost import capture, latency

BUDGET = 0.05
DISK = "256M"
FIO = "fio --name=j --filename=f --size=64M --bs=4k --direct=1 --randseed=3"
JOBS = {
    "reads, one at a time": ("in order", "--rw=randread --ioengine=psync --number_ios={count}"),
    "writes, each with fdatasync": (
        "in order",
        "--rw=randwrite --ioengine=psync --fdatasync=1 --number_ios={count}",
    ),
    "reads, 32 at a time": (
        "at least",
        "--rw=randread --ioengine=libaio --iodepth=32 --number_ios={count}",
    ),
}


def main() -> int:
    """Print the times and their ratios; return 1 if one misses the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    parser.add_argument("models", nargs="*", default=["hdd-7200", "sata-ssd", "sd-a1"])
    asked = parser.parse_args()
    found = {}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'model, job':44}{'live':>9}{'offline':>9}{'ratio':>8}{'more/request':>15}")
    for model in asked.models:
        for job, (which, words) in JOBS.items():
            command = f"{FIO} {words.format(count=asked.requests)}"
            rounds = [measure(model, command, which, asked.requests) for _ in range(asked.rounds)]
            live_s, offline_s = (statistics.median(each) for each in zip(*rounds, strict=True))
            ratio = statistics.median(live / offline for live, offline in rounds)
            found[f"{model}, {job}"] = {"live_s": live_s, "offline_s": offline_s, "ratio": ratio}
            more_us = (live_s - offline_s) / asked.requests * 1e6
            line = f"{f'{model}, {job}':44}{live_s:8.2f}s{offline_s:8.2f}s{ratio:8.3f}"
            print(f"{line}{more_us:12.0f} us", flush=True)
    history.append("live", found)
    missed = [name for name, each in found.items() if abs(each["ratio"] - 1) > BUDGET]
    print(f"budget: ratio within {BUDGET:.0%} of 1; missed: {', '.join(missed) or 'none'}")
    return int(bool(missed) and not asked.unjudged)


def measure(model: str, command: str, which: str, requests: int) -> tuple[float, float]:
    """Return the seconds of the job's requests on the model, and of their replay."""
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        served = recorded(Path(name) / "live", model, command)
        live = latency.replay(served, {})
        source = recorded(Path(name) / "ram", "ram", command)
        offline = latency.replay(source, {"main": latency.find(model)})
        starts = [start_s(each, command, requests) for each in (served, source)]
    offline_s = offline.least_s if which == "at least" else offline.closed_s
    return live.recorded_s - starts[0], offline_s - starts[1]


def start_s(recording: Path, command: str, requests: int) -> float:
    """Return the seconds from the begin of the job to its first request. The file system reads its
    metadata before the job reads, and writes its own after the job has begun to write."""
    op = "write" if "--rw=randwrite" in command else "read"
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        table = Path(name) / "requests.parquet"
        _, intervals = capture.write_requests(recording, table)
        rows = pq.read_table(table, columns=["op", "submit_ns"]).to_pylist()
    [run] = [each for each in intervals if each.name == "run"]
    times = [row["submit_ns"] for row in rows if row["op"] == op]
    own = sorted(each for each in times if run.begin_ns <= each < run.end_ns)
    return float(own[0 if op == "write" else -requests] - run.begin_ns) / 1e9


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
