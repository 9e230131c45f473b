"""What the offline replay costs, against the issue's budget: 5 million requests a second, reading
the recording included, on each model of the catalogue. A mix of reads and writes, a quarter of
them at random places, with a flush after each hundredth.

The time is processor time, the least of several runs: others may use the machine.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import history  # beside this file

from fscost import latency

ROOT = Path(__file__).parents[1]
BUDGET_REQUESTS_PER_S = 5e6


def main() -> int:
    """Print the speed on each model; 1 if one is below the budget."""
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
                speed = {
                    "whole": found["requests"] / (found["read_s"] + found["replay_s"]),
                    "replay": found["requests"] / max(found["replay_s"], 0.01),
                }
                known = best.setdefault(key, speed)
                best[key] = {name: max(known[name], each) for name, each in speed.items()}
    print(f"{'model':26} {'waits':8} {'whole':>10} {'replay alone':>13}   million requests/s")
    for (model, waits), speed in best.items():
        print(f"{model:26} {waits:8} {speed['whole'] / 1e6:10.2f} {speed['replay'] / 1e6:13.2f}")
    history.append("replay", {f"{model}, {waits}": each for (model, waits), each in best.items()})
    slowest = min(speed["whole"] for speed in best.values())
    print(f"slowest {slowest / 1e6:.2f}, budget {BUDGET_REQUESTS_PER_S / 1e6:.0f}")
    return int(slowest < BUDGET_REQUESTS_PER_S)


if __name__ == "__main__":
    sys.exit(main())
