"""Cost of a run of many cells, against its budgets: opening 100,000 cells in less than 2 s, and
running 2,000 cells that do nothing in twice the time of 1,000, in less than 200 MB. The run that is
opened is made here; each cell has samples of a few metrics. Times are CPU times of a new process,
the minimum of several. The same process also parses the run's manifest as JSON and nothing more, to
compare the times of different machines."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import history  # beside this file
import pyarrow as pa

from fscost.results import SCHEMA, CellRecord, Manifest, RunStore
from fscost.results.table import digest

CELLS, METRICS = 100_000, 8
BUDGET_S = 2.0
RUN_CELLS, RUN_BUDGET_BYTES = 2_000, 200_000_000
PROFILES = ("ext2", "ext3", "ext4", "xfs", "btrfs")
OPEN = """
import gc, json, sys, time
from pathlib import Path
from fscost.files import proc_field
from fscost.results import MANIFEST, load
folder = Path(sys.argv[1])
begin = time.process_time()
opened = load(folder)
cpu_s = time.process_time() - begin
peak = int(proc_field(Path("/proc/self/status"), "VmHWM").split()[0]) << 10
text = (folder / MANIFEST).read_text()
gc.disable()  # as load does
begin = time.process_time()
parsed = json.loads(text)
json_cpu_s = time.process_time() - begin
print(json.dumps({"cpu_s": cpu_s, "json_cpu_s": json_cpu_s, "peak_bytes": peak}))
"""
"""A new process, as for each command, without the start of Python."""


def begun() -> Manifest:
    """Return the manifest of a run without cells."""
    texts = dict.fromkeys(("name", "fscost_version", "started_utc", "lab", "stopped_because"), "")
    fields: dict[str, Any] = {
        **texts,
        **{name: {} for name in ("environment", "options", "stopping", "request")},
    }
    return Manifest(
        **fields,
        command_line=[],
        profiles=[{"name": "ext4"}],
        workload={"name": "work"},
        seed=1,
        baseline="ext4",
        state="finished",
        elapsed_s=0.0,
        skipped=[],
        cells=[],
    )


def made(folder: Path, cells: int) -> None:
    """Make a finished run of this many cells."""
    RunStore.create(folder, begun())
    manifest, tables = begun(), []
    for number in range(cells):
        cell, count = f"ext4.{number}", 2 * METRICS
        columns: dict[str, list[Any]] = {
            **{name: [number] * count for name in ("repetition", "seed", "order")},
            "cell": [cell] * count,
            "profile": ["ext4"] * count,
            "phase": ["work"] * METRICS + ["total"] * METRICS,
            "measured": [True] * count,
            "disk": [""] * count,
            "metric": [f"metric_{each}" for each in range(METRICS)] * 2,
            "unit": ["bytes"] * count,
            "value": [float(number + each) for each in range(count)],
        }
        tables.append(pa.table(columns, schema=SCHEMA))
        facts = {"mounted": "rw,relatime"}
        record = CellRecord(
            cell, "ext4", number, number, number, "done", 1.0, "", "", "", "", facts
        )
        manifest.cells.append(replace(record, samples_sha256=digest(tables[-1])))
    RunStore(folder, manifest, pa.concat_tables(tables).combine_chunks()).save()


def ran(folder: Path, cells: int) -> dict[str, float]:
    """Run this many cells of a lab that does nothing."""
    fscost = [str(Path(sys.executable).with_name("fscost")), "compare", "--lab", "fake:noise=0.01"]
    on = [word for profile in PROFILES for word in ("--on", profile)]
    repetitions = ["-r", str(max(1, cells // len(PROFILES)))]
    command = [*fscost, *on, *repetitions, "--keep", "none", "--out", str(folder), "--", "true"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return {"cpu_s": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss << 10}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--run-cells", type=int, default=RUN_CELLS)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        # First: the peak of a child includes what this process holds when the child starts.
        run = {
            "cells": asked.run_cells,
            "half": ran(Path(name) / "half", asked.run_cells // 2),
            "whole": ran(Path(name) / "whole", asked.run_cells),
        }
        folder = Path(name) / "run"
        made(folder, asked.cells)
        command = [sys.executable, "-c", OPEN, str(folder)]
        as_the_program = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # cli/__init__.py
        found = [
            json.loads(subprocess.check_output(command, env=as_the_program))
            for _ in range(asked.runs)
        ]
    least = {name: min(each[name] for each in found) for name in found[0]}
    print(
        f"{asked.cells:,} cells: {least['cpu_s']:.2f} s, {least['peak_bytes'] >> 20} MiB", end="; "
    )
    print(f"their manifest as JSON alone: {least['json_cpu_s']:.2f} s")
    for part in ("half", "whole"):
        cost = run[part]
        print(f"{part} of {asked.run_cells:,} cells run: {cost['cpu_s']:.2f} s,", end=" ")
        print(f"{cost['peak_bytes'] / 1e6:.0f} MB")
    history.append("store", {"cells": asked.cells, "run": run} | least)
    if asked.run_cells >= RUN_CELLS and run["whole"]["peak_bytes"] > RUN_BUDGET_BYTES:
        sys.exit(f"over the budget of {RUN_BUDGET_BYTES / 1e6:.0f} MB")
    if asked.cells >= CELLS and least["cpu_s"] > BUDGET_S:
        sys.exit(f"over the budget of {BUDGET_S:.0f} s")


if __name__ == "__main__":
    main()
