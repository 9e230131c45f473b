"""Cost of the offline replay, against the issue's budget: 5 million requests a second, reading the
recording included, on each model of the catalogue. The requests are a mix of reads and writes, a
quarter of them at random places, with a flush after every hundredth.

The time is processor time, the minimum of several runs, because the machine may be shared. Each
model has three figures: reading the recording (its requests are decompressed and checked, contents
are skipped), the replay of the requests, and both, which the budget is for. `fscost replay` reads
once for each of its two assumptions.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import history  # beside this file

from fscost import latency

ROOT = Path(__file__).parents[1]
BUDGET_REQUESTS_PER_S = 5e6


def main() -> int:
    """Print the speed on each model; return 1 if one is below the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--package", "fscost-replay"]
    subprocess.run([*build, "--examples"], cwd=ROOT, check=True)
    best: dict[tuple[str, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as folder:
        recording = Path(folder) / "recording.fscost"
        models = []
        for model in latency.catalogue():
            models.append(str(Path(folder) / f"{model.name}.toml"))
            Path(models[-1]).write_text(model.text)
        program = ROOT / "target" / "release" / "examples" / "replay_speed"
        command = [str(program), str(recording), str(asked.requests), *models]
        for _ in range(asked.runs):
            answer = subprocess.run(command, check=True, capture_output=True, text=True)
            for found in map(json.loads, answer.stdout.splitlines()):
                key = (Path(found["model"]).stem, found["waits"])
                took = {name: found[f"{name}_s"] for name in ("read", "replay")}
                took["whole"] = sum(took.values())
                speed = {name: found["requests"] / each for name, each in took.items()}
                known = best.setdefault(key, speed)
                best[key] = {name: max(known[name], each) for name, each in speed.items()}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; processor time")
    print(f"{'million requests/s':26} {'waits':8} {'reading':>10} {'replay':>10} {'both':>10}")
    for (model, waits), speed in best.items():
        shown = [f"{speed[name] / 1e6:10.2f}" for name in ("read", "replay", "whole")]
        print(f"{model:26} {waits:8}", *shown)
    history.append("replay", {f"{model}, {waits}": each for (model, waits), each in best.items()})
    below = {model for (model, _), each in best.items() if each["whole"] < BUDGET_REQUESTS_PER_S}
    print(
        f"budget {BUDGET_REQUESTS_PER_S / 1e6:.0f}; below it: {', '.join(sorted(below)) or 'none'}"
    )
    return int(bool(below))


if __name__ == "__main__":
    sys.exit(main())
