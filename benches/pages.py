"""CPU time of `fscost report` of a run of twelve profiles (small-files, three repetitions, native
lab; needs root), against the issue's budget of 3 s: of a run without --ssd, of the same run on a
device, for which the page replays each recording, and of a run with --ssd, which has replayed them.

The least of several runs counts, after one that may build the script of the page's charts."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import history  # beside this file

FSCOST = Path(sys.executable).with_name("fscost")
PROFILES = (
    *("ext4", "ext4-noatime", "ext4-nojournal", "ext4-data-journal", "ext2", "xfs", "btrfs"),
    *("btrfs-compress-zstd", "ext4 -o commit=30", "ext4 -o nodelalloc", "xfs -o noatime"),
    "btrfs -o noatime",
)
DEVICE = "samsung-870-evo-1tb"
PLAIN = "a run without `--ssd`"
BUDGET_S = 3.0
"""For a run without --ssd, on the machine on which `compare --help` takes 0.2 s."""


def made(run: Path, profiles: tuple[str, ...], scale: float, *more: str) -> Path:
    """Run the profiles, and return the run's folder."""
    on = [word for profile in profiles for word in ("--on", profile)]
    lab = ["--lab", "native", "--workload", "small-files", "--scale", f"{scale:g}", "-r", "3"]
    command = [str(FSCOST), "compare", *lab, "--keep", "one", "--out", str(run), *on, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    return run


def cpu_s(words: list[str]) -> float:
    """Return the CPU time of `fscost report`, its children's included."""
    child = subprocess.Popen([FSCOST, "report", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"fscost report {' '.join(words)} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profiles", type=int, default=len(PROFILES))
    parser.add_argument("--scale", type=float, default=0.5, help="Scale of the workload.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--unjudged", action="store_true")
    asked = parser.parse_args()
    profiles = PROFILES[: asked.profiles]
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as folder:
        plain = made(Path(folder) / "plain", profiles, asked.scale)
        worn = made(Path(folder) / "worn", profiles, asked.scale, "--ssd", DEVICE)
        commands = {
            PLAIN: [str(plain)],
            f"the same, with `report --ssd {DEVICE}`": [str(plain), "--ssd", DEVICE],
            f"a run with `compare --ssd {DEVICE}`": [str(worn)],
        }
        cpu_s(commands[PLAIN])
        rounds = [
            {name: cpu_s(words) for name, words in commands.items()} for _ in range(asked.runs)
        ]
    found = {name: {"cpu_s": min(each[name] for each in rounds)} for name in commands}
    for name, each in found.items():
        print(f"{name}: {each['cpu_s']:.2f} s")
    found[PLAIN]["budget_s"] = BUDGET_S
    history.append("pages", {"profiles": len(profiles), "commands": found})
    if not asked.unjudged and found[PLAIN]["cpu_s"] > BUDGET_S:
        sys.exit(f"over the budget of {BUDGET_S:.0f} s")


if __name__ == "__main__":
    main()
