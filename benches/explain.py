"""Cost of the commands that a user waits for.

These are `fscost explain` of a whole recording, with and without `--parquet`, its first line,
`fscost --help`, and the export of an image beside a plain copy of the same bytes.

Budgets on two idle cores: 1 GB of recorded content a second (300,000 requests a second where
requests have 4 KiB or less on average), 0.2 s to the first line, `--parquet` at most 1.3 times
slower, an export as fast as `cp --sparse=always` of that image.

The recordings are of a tree of 60,000 files like a kernel's: unpacked, object files added beside
the sources, the object files removed, everything removed. One more is of the workload small-files
on xfs, whose log gives it twenty rows for each request. They are made here (needs root), or found
with --recordings. Times are wall times, the minimum of several runs. Each has its CPU time beside
it, which estimates the time on an idle machine.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import history  # beside this file

from fscost import capture
from fscost.host import environment
from fscost.workload.recipes import tree
from fscost.workload.recipes.request import Request

FSCOST = Path(sys.executable).with_name("fscost")
PROFILES = ("ext4", "xfs", "btrfs")
TREE, SMALL_FILES = "kernel-tree", "small-files"
FILES, SMALL_FILES_SCALE = 60_000, 40
SMALL_BYTES = 4096
BUDGET_BYTES_PER_S = 1e9
BUDGET_REQUESTS_PER_S = 300_000
BUDGET_FIRST_LINE_S = 0.2
BUDGET_PARQUET = 1.3
SUMMED_BYTES = 256 << 20
STEPS = """set -e
tar xf {folder}/tree.tar; sync -f .
cd tree; find . -name '*.txt' | awk 'NR % 2' | while read -r file; do echo "$file"; done | {python} {folder}/build.py {folder}/blob; sync -f .
find . -name '*.o' -delete; sync -f .
cd ..; rm -rf tree
"""
BUILD = """import random, sys
blob = open(sys.argv[1], "rb").read()
rng = random.Random(5)
for line in sys.stdin:
    size = min(int(rng.lognormvariate(9.6, 1.0)), len(blob) // 2)
    at = rng.randrange(len(blob) - size)
    with open(line.rstrip()[:-4] + ".o", "wb") as out:
        out.write(blob[at : at + size])
"""


def make_recordings(folder: Path, share: float) -> None:
    """Record one cell for each family, and the small files: this share of them."""
    inputs = folder / "inputs"
    inputs.mkdir()
    files = int(FILES * share)
    settings = {"files": files, "file_bytes": 11_000, "directories": files * 3 // 40}
    tree.make(inputs, Request(settings, 1, None, print))
    # Compiler output compresses as programs do; the largest library available stands in for it.
    libraries = sorted(Path(sys.prefix, "lib").rglob("*.so*"), key=lambda file: file.stat().st_size)
    (inputs / "blob").write_bytes(libraries[-1].read_bytes())
    (inputs / "build.py").write_text(BUILD)
    steps = STEPS.format(folder=inputs, python=sys.executable)
    compare(folder / TREE, *PROFILES, work=["--", "sh", "-c", steps])
    scale = str(SMALL_FILES_SCALE * share)
    compare(folder / SMALL_FILES, "xfs", work=["--workload", SMALL_FILES, "--scale", scale])


def compare(out: Path, *profiles: str, work: Sequence[str]) -> None:
    """Record one repetition of a workload on these profiles."""
    on = [argument for profile in profiles for argument in ("--on", profile)]
    once = ["--min-repetitions", "1", "--max-repetitions", "1", "--keep", "all", "--size", "8G"]
    subprocess.run(
        [FSCOST, "compare", *on, *once, "--out", out, *work], check=True, stdout=subprocess.DEVNULL
    )


def named(folder: Path) -> dict[str, Path]:
    """Return the recordings that were made, by profile, and by workload if it is not the tree."""
    return {
        path.parent.name.split(".")[0] + suffix: path
        for run, suffix in ((TREE, ""), (SMALL_FILES, "-small"))
        for path in sorted(folder.glob(f"{run}/cells/*/recording.fscost"))
    }


def timed(command: Sequence[str | Path]) -> dict[str, float]:
    """Return a command's wall and CPU seconds and the time of its first output. It runs as for a
    user, with compiled modules."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=clean) as process:
        assert process.stdout is not None
        os.read(process.stdout.fileno(), 1)
        first_s = time.monotonic() - begin
        process.stdout.read()
    wall_s, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": wall_s, "first_s": first_s, "cpu_s": cpu_s}


def least(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the minimum of each time."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def measure(recording: Path, folder: Path, runs: int) -> dict[str, Any]:
    """Measure all commands in turn in each round, so that other load on the machine affects all of
    them."""
    found: dict[str, list[dict[str, float]]] = {
        "explain": [],
        "parquet": [],
        "export": [],
        "copy": [],
        "md5sum": [],
    }
    rows, image, copy = folder / "rows.parquet", folder / "image", folder / "copy"
    summed = folder / "summed"
    summed.write_bytes(bytes(SUMMED_BYTES))
    for _ in range(runs):
        for file in (rows, image, copy):
            file.unlink(missing_ok=True)
        found["explain"].append(timed([FSCOST, "explain", recording]))
        found["parquet"].append(timed([FSCOST, "explain", recording, "--parquet", rows]))
        found["export"].append(
            timed([FSCOST, "recording", "export", recording, image, "--as", "image"])
        )
        found["copy"].append(timed(["cp", "--sparse=always", "--verbose", image, copy]))
        found["md5sum"].append(timed(["md5sum", summed]))
    facts = capture.info(recording)
    totals = [disk for interval in capture.intervals(recording) for disk in interval.disks.values()]
    requests = sum(
        sum(value for name, value in disk.items() if name.endswith("requests") or name == "flushes")
        for disk in totals
    )
    return {name: least(times) for name, times in found.items()} | {
        "bytes": facts["content_bytes"],
        "requests": requests,
    }


def report(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Print one line, and the figures over budget."""
    explain, parquet, export, copy = (
        found[each] for each in ("explain", "parquet", "export", "copy")
    )
    is_small = found["bytes"] / found["requests"] <= SMALL_BYTES
    rate, budget = (
        (found["requests"], BUDGET_REQUESTS_PER_S)
        if is_small
        else (found["bytes"], BUDGET_BYTES_PER_S)
    )
    ratios = {
        "parquet": parquet["wall_s"] / explain["wall_s"],
        "export": export["wall_s"] / copy["wall_s"],
        "md5sum": found["bytes"] / SUMMED_BYTES * found["md5sum"]["wall_s"] / explain["wall_s"],
    }
    checks = {
        "rate": rate / explain["wall_s"] >= budget,
        "first line": explain["first_s"] <= BUDGET_FIRST_LINE_S,
        "parquet": ratios["parquet"] <= BUDGET_PARQUET,
    }
    over = [what for what, is_kept in checks.items() if not is_kept]
    print(
        f"{name:9} {found['requests']:9,} {found['bytes'] / 1e9:5.2f}   {explain['wall_s']:6.2f}"
        f" {explain['cpu_s']:6.2f} {found['bytes'] / explain['wall_s'] / 1e9:6.2f}"
        f" {found['requests'] / explain['wall_s'] / 1e3:7.0f} {explain['first_s']:6.2f}  "
        f" {ratios['parquet']:7.2f}   {export['wall_s']:6.2f} {export['cpu_s']:6.2f}"
        f" {copy['wall_s']:6.2f} {ratios['export']:6.2f} {ratios['md5sum']:7.2f}  "
        f" {'OVER: ' + ', '.join(over) if over else 'met'}",
        flush=True,
    )
    return {"name": name, **found, "md5sums": ratios["md5sum"], "over_budget": over}


def main() -> None:
    """Measure, print a line for each recording, and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--recordings", type=Path, help="a folder of recordings (*.fscost), instead of making them"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="share of the files to record")
    parser.add_argument("--out", type=Path, default=history.FOLDER)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        folder = Path(name)
        if arguments.recordings is None:
            make_recordings(folder, arguments.share)
            recordings = named(folder)
        else:
            recordings = {path.stem: path for path in sorted(arguments.recordings.glob("*.fscost"))}
        start = least([timed([FSCOST, "--help"]) for _ in range(arguments.runs)])
        print(
            f"fscost --help: {start['wall_s']:.2f} s, {start['cpu_s']:.2f} s of CPU; load"
            f" {os.getloadavg()[0]:.1f}"
        )
        print(
            f"{'':25}   {'explain':30}        {'parquet':>7}   export               to a    times"
        )
        print(
            f"{'':9} {'requests':>9} {'GB':>5}   {'wall s':>6} {'CPU s':>6} {'GB/s':>6}"
            f" {'kreq/s':>7} {'1st s':>6}   {'ratio':>7}   {'wall s':>6} {'CPU s':>6} {'cp s':>6}"
            f" {'copy':>6} {'md5sum':>7}"
        )
        lines = [
            report(name, measure(path, folder, arguments.runs)) for name, path in recordings.items()
        ]
    arguments.out.mkdir(exist_ok=True)
    out = arguments.out / f"explain-{time.strftime('%Y%m%dT%H%M%S')}.json"
    out.write_text(
        json.dumps({"environment": environment(), "help": start, "recordings": lines}, indent=2)
    )
    history.append("explain", {"help": start, "recordings": lines})
    over = [line["name"] for line in lines if line["over_budget"]]
    print(f"{out}; {'every budget is kept' if not over else 'over budget: ' + ', '.join(over)}")


if __name__ == "__main__":
    os.umask(0o077)
    main()
