"""States examined after power cuts, with all checks, and states enumerated.

Each profile runs the workload of `fscost crash` once; then `fscost crash RUN` examines its
recording, as a user waits for it: with the choice of the states and the controls, whose states
count, but without the workload. Budgets for each second of processor time: 45 states of ext4, 15 of
xfs and 20 of btrfs, and a million states enumerated and told apart in 10 s. Needs root.

CrashMonkey (OSDI '18) examines one state for each persistence point, in 2.2 s a workload.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import history  # beside this file

from fscost import capture

FSCOST = Path(sys.executable).with_name("fscost")
BUDGETS = {"ext4": 45, "xfs": 15, "btrfs": 20}
BUDGET_ENUMERATED_S = 10
MOST_BYTES = 512 << 20
DEVICE = "reorder-4k"


def examined(profile: str, folder: Path, cuts: int) -> dict[str, float]:
    """Return the states of a profile, and the time and processor time of their examination."""
    run = folder / profile
    few = ("--rounds", "8", "--cuts", "1", "--states", "4")
    called("crash", "--on", profile, *few, "-o", run)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    told = json.loads(called("crash", run, "--cuts", str(cuts), "--json"))
    wall_s, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    states = sum(each["states"] for each in (*told["rows"], *told["controls"]))
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    target = BUDGETS[profile]
    return {"states": states, "wall_s": wall_s, "cpu_s": cpu_s, "target": target}


def called(*words: str | Path) -> str:
    """Run fscost, and return what it prints."""
    ended = subprocess.run([FSCOST, *words], capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"fscost {words[0]} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


def enumerated(run: Path, most: int) -> dict[str, float]:
    """Enumerate as many states, of all cuts while the workload ran."""
    [cell] = json.loads((run / "manifest.json").read_text())["cells"]
    recording = run / cell["recording"]
    [span] = [each for each in capture.intervals(recording) if each.name == "run"]
    crash = capture.crash(recording)
    cuts = crash.cuts(span.begin_ns, span.end_ns, 1000)
    states = crash.enumeration(DEVICE, MOST_BYTES)
    count, begin, cpu_s = 0, time.monotonic(), time.process_time()
    while count < most:
        before, seed = count, count
        for at_ns in cuts:
            states.add(at_ns, min(10_000, most - count), seed)
            count, different = states.counts()
            if count == most:
                break
        if count == before:
            break
    wall_s, cpu_s = time.monotonic() - begin, time.process_time() - cpu_s
    target = 1_000_000 / BUDGET_ENUMERATED_S
    found = {"states": count, "different": different, "wall_s": wall_s, "cpu_s": cpu_s}
    return {**found, "target": target}


def main() -> int:
    """Print the rates; return 1 if one is below its budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("profiles", nargs="*", default=list(BUDGETS))
    parser.add_argument("--cuts", type=int, default=40)
    parser.add_argument("--states", type=int, default=1_000_000, help="states to enumerate")
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    asked = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    found: dict[str, dict[str, float]] = {}
    missed = []
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        for profile in asked.profiles:
            each = found[profile] = examined(profile, Path(name), asked.cuts)
            rate = each["states"] / each["cpu_s"]
            if rate < each["target"]:
                missed.append(profile)
            print(
                f"{profile:6} {each['states']:5} states in {each['wall_s']:6.1f} s,"
                f" {each['cpu_s']:6.1f} s of CPU: {rate:5.1f} a second of CPU,"
                f" budget {each['target']}",
                flush=True,
            )
        many = enumerated(Path(name) / asked.profiles[0], asked.states)
    print(
        f"{many['states']:,} states enumerated, {many['different']:,} different, in"
        f" {many['wall_s']:.1f} s, {many['cpu_s']:.1f} s of CPU;"
        f" budget {BUDGET_ENUMERATED_S} s for a million"
    )
    if many["states"] / many["cpu_s"] < many["target"]:
        missed.append("enumeration")
    history.append("crash", {"examined": found, "enumerated": many})
    print(f"missed: {', '.join(missed) or 'none'}")
    return int(bool(missed) and not asked.unjudged)


if __name__ == "__main__":
    sys.exit(main())
