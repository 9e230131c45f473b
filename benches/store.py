"""Cost of opening a run of many cells, against its budget: 100,000 cells in less than 2 s. The run
is made here; each cell has samples of a few metrics. Times are CPU times of a new process, the
minimum of several."""

import argparse
import json
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
OPEN = """
import json, sys, time
from pathlib import Path
from fscost.files import proc_field
from fscost.results import load
begin = time.process_time()
load(Path(sys.argv[1]))
cpu_s = time.process_time() - begin
peak = int(proc_field(Path("/proc/self/status"), "VmHWM").split()[0]) << 10
print(json.dumps({"cpu_s": cpu_s, "peak_bytes": peak}))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        folder = Path(name) / "run"
        made(folder, asked.cells)
        command = [sys.executable, "-c", OPEN, str(folder)]
        found = [json.loads(subprocess.check_output(command)) for _ in range(asked.runs)]
    least = {name: min(each[name] for each in found) for name in found[0]}
    print(f"{asked.cells:,} cells: {least['cpu_s']:.2f} s, {least['peak_bytes'] >> 20} MiB")
    history.append("store", {"cells": asked.cells} | least)
    if asked.cells >= CELLS and least["cpu_s"] > BUDGET_S:
        sys.exit(f"over the budget of {BUDGET_S:.0f} s")


if __name__ == "__main__":
    main()
