"""The recorder's overhead, compared with plain loop devices.

The same cells run on recorded disks and on plain loop devices over a file, side by side in one run.
Both are on one tmpfs, the hardest case, since no disk hides the overhead. Pairs are interleaved,
the order within a pair alternates, and the ratio within a pair counts. Budgets are those of the
issue: whole workloads within 1.15 of the plain loop device (aim 1.10), a 4 KiB write + fsync loop
within 1.25, queued 4 KiB writes at 0.7 times the rate or more, the disk server's memory below
64 MiB + 64 bytes a request.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import history  # beside this file

from fscost import workload
from fscost.host import environment
from fscost.lab.base import LabOptions
from fscost.lab.cell import plan
from fscost.lab.cell.binaries import Binaries, find_binaries
from fscost.lab.cell.events import Event, Failed, Interval
from fscost.lab.native import NativeLab
from fscost.lab.native.agent import run_agent
from fscost.matrix import Cell
from fscost.profile import plan_format, resolve
from fscost.stats.ratio import ratio
from fscost.workload.model import Step, Workload

DISK_BYTES = 4 << 30
MEMORY_BUDGET_BYTES = 64 << 20
MEMORY_BUDGET_PER_REQUEST_BYTES = 64
KINDS = ("plain", "recorded")
FLOOR = "floor"
"""A disk served by the same FUSE session over a store that only keeps bytes
(crates/device/examples/reply_only.rs): the lower bound for any recorder."""
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """A workload and the maximum ratio of each of its phases."""

    workload: Workload
    budgets: dict[str, float]


def cases(scale: float = 1) -> list[Case]:
    """Return whole workloads as the issue names them. At scale 1, they are large enough that a cell
    takes a second or more."""
    return [
        Case(
            workload.resolve("small-files", scale=8 * scale),
            {"unpack": 1.15, "unpack-over": 1.15, "delete": 1.15},
        ),
        Case(workload.resolve("source-tree", scale=2 * scale), {"clone": 1.15, "make": 1.15}),
        Case(workload.resolve("fsync-log", scale=8 * scale), {"append": 1.25}),
        Case(_queued(round(scale * 262_144)), {"write": 1 / 0.7}),
    ]


def _queued(requests: int) -> Workload:
    """Write blocks of 4 KiB at random places of a file that has them, 32 at a time."""
    file = f"fio --name=q --filename=q --size={512 << 20} --direct=1 --minimal"
    queued = f"--ioengine=libaio --iodepth=32 --rw=randwrite --bs=4k --io_size={requests * 4096}"
    return Workload(
        "queued-writes",
        (
            Step("layout", f"{file} --rw=write --bs=1m", measured=False),
            Step("write", f"{file} {queued} --norandommap"),
        ),
    )


@dataclass(frozen=True)
class Measured:
    """Wall time of one cell by phase, and the server's memory."""

    wall_s: dict[str, float]
    requests: int
    server_peak_bytes: int
    server_cpu_s: float


def measure(
    case: Case,
    kind: str,
    repetition: int,
    profile: str,
    folder: Path,
    input_: Path | None,
    binaries: Binaries,
) -> Measured:
    """Run one cell on a recorded disk, or on a plain loop device."""
    work = case.workload if input_ is None else _with_input(case.workload, input_)
    cell = Cell(resolve(profile), work, repetition, repetition, repetition)
    cell_dir = folder / "cell"
    cell_dir.mkdir()
    try:
        options = LabOptions(cell_dir=cell_dir, disk_size_bytes=DISK_BYTES)
        formatted = plan_format(cell.profile, disk_size_bytes=DISK_BYTES, seed=cell.seed)
        built = plan.build(cell, options, formatted, NativeLab(binaries).place(cell, options))
        if kind == "plain":
            built |= {
                "disk_server": None,
                "disks": [
                    {**disk, "file": _sparse(cell_dir / disk["name"])} for disk in built["disks"]
                ],
            }
        if kind == FLOOR:
            built["disk_server"] = [str(_reply_only()), *built["disk_server"][1:]]
        intervals: list[Interval] = []

        def on_event(event: Event) -> None:
            if isinstance(event, Failed):
                raise SystemExit(f"{kind} cell failed: {event.message}")
            if isinstance(event, Interval):
                intervals.append(event)

        with peak_memory(str(cell_dir)) as peak:
            run_agent(binaries.agent, built, cell_dir / "agent.log", 600, on_event)
        counters = [disk for interval in intervals for disk in interval.counters.values()]
        return Measured(
            {i.name: i.wall_ns / 1e9 for i in intervals if i.measured},
            sum(c.write_requests + c.read_requests + c.flush_requests for c in counters),
            peak[0],
            sum((i.cpu_disk_server_ns or 0) / 1e9 for i in intervals if i.measured),
        )
    finally:
        shutil.rmtree(cell_dir)


def _reply_only() -> Path:
    """Build the server that only replies, and return it."""
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "fscost-device"]
    subprocess.run([*build, "--example", "reply_only"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/reply_only"


def _with_input(work: Workload, input_: Path) -> Workload:
    from dataclasses import replace

    return replace(work, input=input_)


def _sparse(file: Path) -> str:
    with file.open("wb") as stream:
        stream.truncate(DISK_BYTES)
    return str(file)


@contextmanager
def peak_memory(command_has: str) -> Iterator[list[int]]:
    """Yield the peak resident size of the cell's disk server, as the kernel keeps it."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        server: Path | None = None
        while not over.wait(0.02):
            if server is None:
                server = _server(command_has)
                continue
            try:
                for line in (server / "status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        peak[0] = max(peak[0], int(line.split()[1]) * 1024)
            except OSError:
                server = None

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def _server(command_has: str) -> Path | None:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "fscost-disk" in command.split("\0")[0] and command_has in command:
                return process
    return None


def main() -> None:
    """Measure, print a line for each phase, and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1, help="size of the workloads")
    parser.add_argument("--profile", default="ext4")
    parser.add_argument(
        "--only", choices=[case.workload.name for case in cases()], help="a workload"
    )
    parser.add_argument(
        "--floor",
        action="store_true",
        help="also measure a server that only replies, in the same rounds",
    )
    parser.add_argument("--out", type=Path, default=history.FOLDER)
    arguments = parser.parse_args()
    binaries = find_binaries()
    report: dict[str, Any] = {
        "environment": environment(),
        "profile": arguments.profile,
        "pairs": arguments.pairs,
        "phases": [],
    }
    print(
        f"{'workload':12} {'phase':12} {'plain s':>8} {'recorded s':>10} {'ratio':>6} {'95 %':>13}"
        f" {'budget':>6}   server: CPU s, MiB"
    )
    with tempfile.TemporaryDirectory(prefix="fscost-bench-", dir="/dev/shm") as name:
        for case in cases(arguments.scale):
            if arguments.only in (None, case.workload.name):
                report["phases"] += bench(
                    case,
                    arguments.pairs,
                    arguments.profile,
                    Path(name),
                    binaries,
                    [*KINDS, *([FLOOR] if arguments.floor else [])],
                )
    arguments.out.mkdir(exist_ok=True)
    out = arguments.out / f"overhead-{time.strftime('%Y%m%dT%H%M%S')}.json"
    out.write_text(json.dumps(report, indent=2))
    history.append("overhead", report["phases"])
    over = [each["phase"] for each in report["phases"] if each["ratio"] > each["budget"]]
    print(f"{out}; {'over budget: ' + ', '.join(over) if over else 'every budget is kept'}")


def bench(
    case: Case, pairs: int, profile: str, folder: Path, binaries: Binaries, kinds: list[str]
) -> list[dict[str, Any]]:
    """Run all pairs of one workload."""
    input_ = workload.inputs.prepare(case.workload, folder / "inputs" / case.workload.name)
    found: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    for pair in range(-1, pairs):
        for kind in kinds if pair % 2 else reversed(kinds):
            measured = measure(case, kind, pair, profile, folder, input_, binaries)
            if pair >= 0:  # The first pair warms the caches.
                found[kind].append(measured)
    shutil.rmtree(folder / "inputs", ignore_errors=True)
    lines = []
    for phase, budget in case.budgets.items():
        walls = {kind: {n: m.wall_s[phase] for n, m in enumerate(found[kind])} for kind in kinds}
        result = ratio(walls["recorded"], walls["plain"])
        median = {kind: sorted(walls[kind].values())[pairs // 2] for kind in KINDS}
        server = max(found["recorded"], key=lambda m: m.server_peak_bytes)
        allowed = MEMORY_BUDGET_BYTES + MEMORY_BUDGET_PER_REQUEST_BYTES * server.requests
        if server.server_peak_bytes > allowed:
            print(
                f"the server's memory is over budget: {server.server_peak_bytes} of {allowed} bytes"
            )
        interval = "" if result.low is None else f"{result.low:.2f} – {result.high:.2f}"
        print(
            f"{case.workload.name:12} {phase:12} {median['plain']:8.3f} {median['recorded']:10.3f}"
            f" {result.ratio or 0:6.2f} {interval:>13} {budget:6.2f}   {server.server_cpu_s:.2f},"
            f" {server.server_peak_bytes / (1 << 20):.0f}",
            flush=True,
        )
        line = {
            "workload": case.workload.name,
            "phase": phase,
            "budget": budget,
            "wall_s": walls,
            "ratio": result.ratio,
        }
        line |= {
            "low": result.low,
            "high": result.high,
            "server_peak_bytes": server.server_peak_bytes,
            "requests": server.requests,
        }
        if FLOOR in kinds:
            line["floor"] = ratio(walls[FLOOR], walls["plain"]).ratio
            print(
                f"{'':12} {'  floor':12} {'':8} {sorted(walls[FLOOR].values())[pairs // 2]:10.3f}"
                f" {line['floor'] or 0:6.2f}",
                flush=True,
            )
        lines.append(line)
    return lines


if __name__ == "__main__":
    os.umask(0o077)
    main()
