"""Cost of an explanation, against the issue's budget.

The budget is 1 GB of recorded content and 500,000 requests a second and core in the classifier, and
less than 1 GiB of memory for a recording of 50 GB. Requests of 100 KiB cannot reach the request
rate, and requests of 1 KiB cannot reach the byte rate. So a recording whose requests have 4 KiB or
less on average is held to requests a second, any other to bytes. The table also has blkparse, the
nearest comparable tool, summing the same requests by process.

The recordings are of built-in workloads, made here (needs root), or found with --recordings. Times
are CPU times, the minimum of several runs, because the machine may be shared. The classifier is one
thread; other threads decompress the frames, and `whole` counts these too.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import history  # beside this file
import numpy as np

from fscost import capture
from fscost.host import environment

ROOT = Path(__file__).parents[1]
WORKLOADS = {"small-files": 16, "fsync-log": 8, "big-file": 1, "random-write": 1, "source-tree": 1}
PROFILES = ("ext4", "xfs", "btrfs")
SMALL_BYTES = 4096
"""Maximum content of a request, on average over all requests, for a budget in requests."""
BUDGET_BYTES_PER_S = 1e9
BUDGET_REQUESTS_PER_S = 500_000
BUDGET_PEAK_BYTES = 1 << 30
LARGE = {"4 KiB random": ("4", "random"), "512 KiB sequential": ("512", "sequential")}

TRACE = np.dtype(
    [
        ("magic", "<u4"),
        ("sequence", "<u4"),
        ("time_ns", "<u8"),
        ("sector", "<u8"),
        ("bytes", "<u4"),
        ("action", "<u4"),
        ("pid", "<u4"),
        ("device", "<u4"),
        ("cpu", "<u4"),
        ("error", "<u2"),
        ("pdu_bytes", "<u2"),
    ]
)
"""blktrace's record: struct blk_io_trace in the kernel's include/uapi/linux/blktrace_api.h."""
TRACE_MAGIC = 0x65617407
QUEUE, ISSUE, COMPLETE = (1 | 1 << 20, 7 | 1 << 22, 8 | 1 << 23)
DIRECTION = {
    "read": 1 << 16,
    "write": 1 << 17,
    "flush": 1 << 18 | 1 << 17,
    "discard": 1 << 29 | 1 << 17,
}


CATEGORIES = {"write_zeroes": "write", "punch": "discard"}
"""Operations of a recording that a block trace calls otherwise."""


def make_recordings(folder: Path, workloads: Sequence[str], share: float) -> None:
    """Record one cell for each family and workload, at this share of its scale."""
    fscost = Path(sys.executable).with_name("fscost")
    on = [argument for profile in PROFILES for argument in ("--on", profile)]
    once = ["--min-repetitions", "1", "--max-repetitions", "1", "--keep", "all"]
    for name in workloads:
        command: list[str | Path] = [
            fscost,
            "compare",
            *on,
            "--workload",
            name,
            "--scale",
            str(WORKLOADS[name] * share),
            *once,
            "--out",
            folder / name,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure(program: Path, recording: Path, runs: int) -> dict[str, Any]:
    """Return the run with the least CPU time, and the excess of the slowest run."""
    found = []
    for _ in range(runs):
        done = subprocess.run(
            [program / "classify", recording], check=True, capture_output=True, text=True
        )
        found.append(json.loads(done.stdout))
    times = [float(line["classifier_cpu_s"]) for line in found]
    return dict(found[times.index(min(times))]) | {
        "runs": runs,
        "spread": max(times) / min(times) - 1,
    }


def process_peak_bytes(recording: Path) -> int:
    """Return the peak resident memory of `fscost explain`, Python included."""
    fscost = Path(sys.executable).with_name("fscost")
    with subprocess.Popen([fscost, "explain", recording], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"fscost explain {recording} ended with {process.returncode}")
    return used.ru_maxrss << 10


def write_trace(recording: Path, trace: Path) -> None:
    """Write the requests in blktrace's binary form: queued, issued and completed, as blktrace
    itself records them."""
    number = 0
    with trace.open("wb") as out:
        for batch in capture.requests(recording):
            columns = {
                name: batch[name].to_numpy()
                for name in ("submit_ns", "complete_ns", "offset", "length")
            }
            op = batch["op"].indices.to_numpy()
            names = batch["op"].dictionary.to_pylist()
            kinds = np.array([DIRECTION[CATEGORIES.get(name, name)] for name in names], "<u4")
            records = np.zeros((len(op), 3), TRACE)
            records["magic"] = TRACE_MAGIC
            records["sequence"] = np.arange(number, number + 3 * len(op)).reshape(-1, 3) + 1
            records["time_ns"] = np.stack(
                [columns["submit_ns"], columns["submit_ns"], columns["complete_ns"]], axis=1
            )
            records["sector"] = (columns["offset"] // 512)[:, None]
            records["bytes"] = np.minimum(columns["length"], 1 << 30)[
                :, None
            ]  # blkparse counts in an int
            records["action"] = kinds[op][:, None] | np.array([QUEUE, ISSUE, COMPLETE], "<u4")
            records["pid"] = 1
            records["device"] = 7 << 20
            records.tofile(out)
            number += records.size


def blkparse_s(recording: Path, folder: Path, runs: int) -> float | None:
    """Return CPU seconds of blkparse for its summary by process, without a line for each request;
    None without blkparse."""
    blkparse = shutil.which("blkparse")
    if blkparse is None:
        return None
    write_trace(recording, folder / "trace.blktrace.0")
    times = []
    for _ in range(runs):
        before = os.times()
        done = subprocess.run(
            [blkparse, "-s", "-f", "", "-i", "trace"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        after = os.times()
        if "Writes Queued" not in done.stdout:
            raise SystemExit(f"blkparse did not understand the trace:\n{done.stdout}{done.stderr}")
        times.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    (folder / "trace.blktrace.0").unlink()
    return min(times)


def report(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Print one line: the rate that the recording is held to, and the figures over budget."""
    cpu_s = found["classifier_cpu_s"]
    rates = {"bytes": found["content_bytes"] / cpu_s, "requests": found["requests"] / cpu_s}
    request_bytes = found["content_bytes"] / found["requests"]
    held_to = "requests" if request_bytes <= SMALL_BYTES else "bytes"
    over = (
        [held_to]
        if rates[held_to]
        < {"bytes": BUDGET_BYTES_PER_S, "requests": BUDGET_REQUESTS_PER_S}[held_to]
        else []
    )
    if found["peak_bytes"] > BUDGET_PEAK_BYTES:
        over.append("memory")
    nearest = found.get("blkparse_cpu_s")
    print(
        f"{found['family']:6} {name:18} {found['requests']:9} {found['content_bytes'] / 1e9:7.2f}"
        f" {request_bytes / 1024:7.1f}   {rates['bytes'] / 1e9:6.2f} {rates['requests'] / 1e3:8.0f}"
        f"   {found['content_bytes'] / found['whole_cpu_s'] / 1e9:6.2f}"
        f" {found['requests'] / found['whole_cpu_s'] / 1e3:8.0f}   {found['rows'] / 1e6:6.2f}"
        f" {found['peak_bytes'] / (1 << 20):6.0f}  "
        f" {'-' if nearest is None else f'{nearest:.2f}':>8} {found['whole_cpu_s']:7.2f}  "
        f" {found['runs']:2} {'+' + format(found['spread'], '.0%'):>6}   {held_to:8}"
        f" {'OVER: ' + ', '.join(over) if over else 'met'}",
        flush=True,
    )
    return {"name": name, **found, "held_to": held_to, "over_budget": over}


def main() -> None:
    """Measure, print a line for each recording, and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--recordings", type=Path, help="a folder of runs that kept theirs, instead of making them"
    )
    parser.add_argument("--only", help="a workload")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="share of the scale to record")
    parser.add_argument(
        "--large-gib",
        type=int,
        default=0,
        help=(
            "also explain a recording with that much more written to big-file's places (50: the"
            " budget's)"
        ),
    )
    parser.add_argument("--out", type=Path, default=history.FOLDER)
    arguments = parser.parse_args()
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "fscost-explain"]
    subprocess.run([*build, "--examples"], cwd=ROOT, check=True)
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples"
    if shutil.which("blkparse") is None:
        print("NOT COMPARED: blkparse is missing (apt-get install blktrace)")
    print(f"{'':54}   classifier        whole             {'rows':>6} {'peak':>6}   CPU s:")
    print(
        f"{'family':6} {'workload':18} {'requests':>9} {'GB':>7} {'KiB/req':>7}   {'GB/s':>6}"
        f" {'kreq/s':>8}   {'GB/s':>6} {'kreq/s':>8}   {'M':>6} {'MiB':>6}   {'blkparse':>8}"
        f" {'explain':>7}    n spread   held to"
    )
    lines = []
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        folder = arguments.recordings or Path(name) / "recordings"
        chosen = [w for w in WORKLOADS if arguments.only in (None, w)]
        if arguments.recordings is None:
            make_recordings(folder, chosen, arguments.share)
        found_in = "*" if arguments.only is None else f"*{arguments.only}"
        for recording in sorted(folder.glob(f"{found_in}/cells/*/recording.fscost")):
            found = measure(program, recording, arguments.runs)
            found["blkparse_cpu_s"] = blkparse_s(recording, Path(name), arguments.runs)
            lines.append(report(recording.parents[2].name, found))
        for profile in PROFILES if arguments.large_gib else ():
            lines += large(
                program,
                folder / "big-file/cells" / f"{profile}.0/recording.fscost",
                Path(name),
                arguments.large_gib,
            )
    arguments.out.mkdir(exist_ok=True)
    out = arguments.out / f"classify-{time.strftime('%Y%m%dT%H%M%S')}.json"
    out.write_text(json.dumps({"environment": environment(), "recordings": lines}, indent=2))
    history.append("classify", lines)
    over = [f"{line['family']} {line['name']}" for line in lines if line["over_budget"]]
    print(f"{out}; {'every budget is kept' if not over else 'over budget: ' + ', '.join(over)}")


def large(program: Path, recording: Path, folder: Path, gib: int) -> list[dict[str, Any]]:
    """Measure the memory of the whole process for a recording of tens of gigabytes."""
    lines = []
    for name, (request_kib, order) in LARGE.items():
        out = folder / "large.fscost"
        subprocess.run(
            [program / "enlarge", recording, out, str(gib), request_kib, order],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        peak_bytes = process_peak_bytes(out)
        lines.append(
            report(f"{gib} GiB, {name}", measure(program, out, 1) | {"peak_bytes": peak_bytes})
        )
        out.unlink()
    return lines


if __name__ == "__main__":
    os.umask(0o077)
    main()
