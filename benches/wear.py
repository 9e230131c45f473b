"""How fast the SSD model takes writes: units a second of CPU time, memory, and the ratio to a naive
replay.

    benches/wear.py [CAPACITY_GIB]      (default: 256)

28 % over-provisioning, 4 KiB units, blocks of 1,024 units, greedy collection, steady state. The
clock is the thread's CPU time, because machines
are shared; a neighbour that takes the caches and the memory's bandwidth still slows it down, so the
load is printed too.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROFILE = {
    "CARGO_PROFILE_RELEASE_LTO": "thin",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "4",
    "CARGO_PROFILE_RELEASE_INCREMENTAL": "false",
}
"""Cargo.toml's own release profile, also where ~/.cargo/config.toml has another: without it small
functions are not inlined."""
ROWS = (
    ("random 4 KiB writes", "random", "plain", 10.0),
    ("the same, charged by tag", "random", "charged", 5.0),
    ("extents of 1 MiB", "extents", "plain", None),
    ("the same, charged by tag", "extents", "charged", None),
)
_LINE = re.compile(
    r"(sequential|random): ([\d.]+) M units/s of the host, ([\d.]+) M units/s of NAND, write amplification ([\d.]+)"
)
_BYTES = re.compile(r"([\d.]+) bytes for each physical unit")


def main() -> None:
    """Print the table; exit 1 where a budget is missed."""
    gib = sys.argv[1] if len(sys.argv) > 1 else "256"
    target = ROOT / "target" / "bench"
    build = [
        "cargo",
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--package",
        "fscost-ssd",
        "--example",
        "write_speed",
        "--target-dir",
        str(target),
    ]
    subprocess.run(build, cwd=ROOT, check=True, env=os.environ | PROFILE)
    program = target / "release/examples/write_speed"
    print(
        f"{gib} GiB, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; million units of 4 KiB a second of CPU time"
    )
    print(f"{'':28}{'sequential':>12}{'steady':>10}{'NAND':>10}{'WA':>8}{'bytes/unit':>12}  budget")
    missed = []
    speeds = {}
    for name, kind, charged, budget in ROWS:
        answer = subprocess.run(
            [program, gib, kind, charged], check=True, capture_output=True, text=True
        ).stdout
        runs = [(each[0], *map(float, each[1:])) for each in _LINE.findall(answer)]
        sequential = max(speed for what, speed, *_ in runs if what == "sequential")
        _, host, nand, amplification = runs[-1]
        size = float(_BYTES.findall(answer)[0])
        speeds[name, kind, charged] = host
        least, found = (
            (budget, host) if budget else (300.0 if charged == "plain" else 150.0, sequential)
        )
        verdict = "met" if found >= least and size <= 10 else "MISSED"
        if verdict != "met":
            missed.append(name)
        print(
            f"{name:28}{sequential:12.1f}{host:10.2f}{nand:10.1f}{amplification:8.3f}{size:12.2f}  {least:.0f}: {verdict}"
        )
    naive = float(
        subprocess.run(
            [program, "4", "naive", "plain"], check=True, capture_output=True, text=True
        ).stdout.split()[1]
    )
    small = _LINE.findall(
        subprocess.run(
            [program, "4", "random", "plain"], check=True, capture_output=True, text=True
        ).stdout
    )[-1]
    print(
        f"naive replay of 4 GiB (hash map, scan for the victim): {naive:.2f} M units/s; this model at 4 GiB: {float(small[1]) / naive:.1f} times that"
    )
    for other in ("MQSim", "simplessd-standalone"):
        where = shutil.which(other)
        print(f"{other}: {where or 'not on PATH, not compared'}")
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
