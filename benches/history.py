"""The history of the benchmarks: `bench-results/history.jsonl` gets one line for each run."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from fscost.host import environment

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("FSCOST_BENCH_RESULTS", ROOT / "bench-results"))
"""Folder of the results. The tests, which run each benchmark small, name another."""
FILE = FOLDER / "history.jsonl"


def append(bench: str, figures: Any, file: Path = FILE) -> None:
    """Append what a benchmark found, with the revision and the machine that it was found on."""
    git = ["git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty", "--abbrev=12"]
    revision = subprocess.run(git, cwd=ROOT, check=False, capture_output=True, text=True)
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "bench": bench,
        "revision": revision.stdout.strip(),
        "load": os.getloadavg()[0],
        "machine": environment(),
        "figures": figures,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")
