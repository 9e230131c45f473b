"""Cost of the offline replay, against the issue's budget: 5 million requests a second, reading the
recording included, on each model of the catalogue. The requests are a mix of reads and writes, a
quarter of them at random places, with a flush after every hundredth.

`fscost replay` reads the recording once and replays it under both assumptions at the same time, so
each request is replayed twice. The budget is for these replays a second of wall time on two cores.
Beside it stand the processor times of the parts on one core: reading the recording (its requests are
decompressed and checked, contents are skipped), and the replay under each assumption. All are the
best of several runs, because the machine may be shared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import history  # beside this file

from fscost import capture, devices, latency

ROOT = Path(__file__).parents[1]
BUDGET_REQUESTS_PER_S = 5e6
PARTS = ("reading", "flushes", "all", "command")


def main() -> int:
    """Print the speed on each model; return 1 if one is below the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    asked = parser.parse_args()
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "fscost-replay"]
    subprocess.run([*build, "--examples"], cwd=ROOT, check=True)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as folder:
        recording = Path(folder) / "recording.fscost"
        for model in [
            latency.of_file(each) for each in devices.catalogue() if "latency" in each.sections
        ]:
            text = Path(folder) / f"{model.name}.toml"
            text.write_text(model.text)
            runs = [measure(recording, text, asked.requests) for _ in range(asked.runs)]
            found[model.name] = {part: min(each[part] for each in runs) for part in PARTS}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'million requests/s':26}", *(f"{part:>10}" for part in PARTS))
    for name, took in found.items():
        print(f"{name:26}", *(f"{1 / each / 1e6:10.2f}" for each in took.values()))
    history.append("replay", {name: dict(took) for name, took in found.items()})
    below = [name for name, took in found.items() if 1 / took["command"] < BUDGET_REQUESTS_PER_S]
    print(f"budget of command: {BUDGET_REQUESTS_PER_S / 1e6:.0f}; below it: {below or 'none'}")
    return int(bool(below) and not asked.unjudged)


def measure(recording: Path, model: Path, requests: int) -> dict[str, float]:
    """Return the seconds that a request takes in each part."""
    program = ROOT / "target" / "release" / "examples" / "replay_speed"
    command = [str(program), str(recording), str(requests), str(model)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    waits = {each["waits"]: each for each in map(json.loads, answer.stdout.splitlines())}
    count = waits["all"]["requests"]
    with capture.opened(recording) as source:
        begin = time.perf_counter()
        found = source.replay([(str(model), model.read_text())], ["flushes", "all"], 1)
        wall_s = time.perf_counter() - begin
    assert found is not None, "the recording has no times"
    return {
        "reading": min(each["read_s"] for each in waits.values()) / count,
        "flushes": waits["flushes"]["replay_s"] / count,
        "all": waits["all"]["replay_s"] / count,
        "command": wall_s / (2 * count),
    }


if __name__ == "__main__":
    sys.exit(main())
