"""Speed of the SSD model for writes: units a second of CPU time, memory, and the ratio to a naive
replay.

    benches/wear.py [CAPACITY_GIB] [--mqsim PROGRAM]     (default: 256, and MQSim if it is on PATH)

28 % over-provisioning, 4 KiB units, blocks of 1,024 units, greedy collection, steady state. The
clock is the thread's CPU time, because machines are shared. A neighbour that uses the caches and
the memory bandwidth still slows it down, so the load is printed too.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import history  # beside this file
import mqsim

ROOT = Path(__file__).resolve().parents[1]
PROFILE = {
    "CARGO_PROFILE_RELEASE_LTO": "thin",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "4",
    "CARGO_PROFILE_RELEASE_INCREMENTAL": "false",
}
"""Cargo.toml's own release profile, even if ~/.cargo/config.toml overrides it: without it small
functions are not inlined."""
ROWS = (
    ("random 4 KiB writes", "random", "plain", 10.0),
    ("the same, charged by tag", "random", "charged", 5.0),
    ("extents of 1 MiB", "extents", "plain", None),
    ("the same, charged by tag", "extents", "charged", None),
)
LEAST_CHARGED_SHARE = 0.5
"""Minimum speed of attribution by cause, relative to the same writes without it."""
_LINE = re.compile(
    r"(sequential|random): ([\d.]+) M units/s of the host, ([\d.]+) M units/s of NAND,"
    r" write amplification ([\d.]+)"
)
_BYTES = re.compile(r"([\d.]+) bytes for each physical unit")


def build(package: str = "fscost-ssd") -> Path:
    """Build the package's examples, which write to its model, and return their folder."""
    target = ROOT / "target" / "bench"
    command: list[str | Path] = [
        "cargo",
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--target-dir",
        target,
    ]
    programs = ["--package", package, "--examples"]
    subprocess.run([*command, *programs], cwd=ROOT, check=True, env=os.environ | PROFILE)
    return target / "release/examples"


def run(program: Path, *arguments: str) -> str:
    """Run a program, and return its output."""
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def measured(
    program: Path, gib: str, kind: str, charged: str
) -> tuple[list[tuple[str, float, float, float]], float]:
    """Return each run's name and three numbers, and bytes for each physical unit. The faster of two
    runs counts, because neighbours on the machine only slow it down."""
    found = []
    for _ in range(2):
        answer = run(program, gib, kind, charged)
        runs = [(what, float(a), float(b), float(c)) for what, a, b, c in _LINE.findall(answer)]
        found.append((runs, float(_BYTES.findall(answer)[0])))
    return max(found, key=lambda each: each[0][-1][1])


def beside_mqsim(simulator: Path, model: Path) -> str:
    """Return the table of both, or the reason why there is none."""
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "trace"
        mqsim.write_trace(trace)
        try:
            played = mqsim.play_mqsim(simulator, trace, Path(name))
        except (OSError, mqsim.MQSimError) as error:
            return f"MQSim ({simulator}): not compared: {error}"
        return mqsim.table(mqsim.play_model(model, trace), played)


def main() -> None:
    """Print the table; exit 1 if a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("capacity_gib", nargs="?", default="256")
    parser.add_argument("--mqsim", type=Path, help="program to compare with (default: from PATH)")
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    arguments = parser.parse_args()
    gib = arguments.capacity_gib
    programs = build()
    program = programs / "write_speed"
    print(
        f"{gib} GiB, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors;"
        " million units of 4 KiB a second of CPU time"
    )
    columns = ("sequential", "steady", "NAND", "WA", "bytes/unit")
    widths = (12, 10, 10, 8, 12)
    heads = "".join(f"{name:>{width}}" for name, width in zip(columns, widths, strict=True))
    print(f"{'':28}{heads}  budget")
    missed = []
    patterns: dict[str, dict[str, Any]] = {}
    for name, kind, charged, budget in ROWS:
        runs, size = measured(program, gib, kind, charged)
        sequential = max(speed for what, speed, *_ in runs if what == "sequential")
        _, host, nand, amplification = runs[-1]
        least, found = (
            (budget, host) if budget else (300.0 if charged == "plain" else 150.0, sequential)
        )
        patterns[f"{kind}, {charged}"] = {
            "steady": host,
            "sequential": sequential,
            "judges": "steady" if budget else "sequential",
            "target": least,
            "unit_bytes": size,
        }
        verdict = "met" if found >= least and size <= 10 else "MISSED"
        if verdict != "met":
            missed.append(name)
        numbers = f"{sequential:12.1f}{host:10.2f}{nand:10.1f}{amplification:8.3f}{size:12.2f}"
        print(f"{name:28}{numbers}  {least:.0f}: {verdict}")
    for kind in ("random", "extents"):
        plain, charged = (patterns[f"{kind}, {how}"]["steady"] for how in ("plain", "charged"))
        share = charged / plain
        verdict = "met" if share >= LEAST_CHARGED_SHARE else "MISSED"
        if verdict != "met":
            missed.append(f"{kind}, charged beside plain")
        print(
            f"{kind}, charged beside plain: {share:.0%} of the speed,"
            f" budget {LEAST_CHARGED_SHARE:.0%}: {verdict}"
        )
    naive = float(run(program, "4", "naive", "plain").split()[1])
    small = float(_LINE.findall(run(program, "4", "random", "plain"))[-1][1])
    print(
        f"naive replay of 4 GiB (hash map, scan for the victim): {naive:.2f} M units/s;"
        f" this model at 4 GiB: {small / naive:.1f} times that"
    )
    simulator = arguments.mqsim or shutil.which("MQSim")
    if simulator is None:
        print("MQSim: not on PATH, not compared; name it with --mqsim")
    else:
        print(beside_mqsim(Path(simulator).absolute(), programs / "play_trace"))
    history.append("wear", {"patterns": patterns, "naive": naive, "small": small})
    if missed and not arguments.unjudged:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
