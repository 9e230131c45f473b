"""CPU time of short commands: `compare --help`, and `show` of a run of five profiles. Almost all of
it is the import of libraries, so the time of these imports alone is measured as well.

Seconds depend on the machine, so the targets are shares of an older revision's times: 0.2 of 0.48 s
and 0.35 of 0.63 s at revision ba24060. `--before DIR` is a checkout of that revision with its
native module (`make setup`); both run in turns, and the minimum of several runs counts."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import history  # beside this file

TARGETS = {"compare --help": 0.2 / 0.48, "show RUN": 0.35 / 0.63}
"""CPU time of each command, as a share of the older revision's."""
PROFILES = ("ext4", "ext4 -o noatime", "ext4 -O ^has_journal", "xfs", "btrfs")
MAIN = "from fscost.cli import main; main()"
LIBRARIES = {
    "compare --help": "import typer.main, typer.completion",
    "show RUN": "import typer.main, typer._adapters, pyarrow.parquet, pyarrow.compute",
}
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "PYDANTIC_DISABLE_PLUGINS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""As fscost sets it, for the imports alone."""


def cpu_s(code: str, words: list[str], checkout: Path) -> float:
    """Return the CPU time of Python code, with the modules of this checkout."""
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(checkout / "python")}
    child = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{code} {' '.join(words)} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime


def measured(run: Path, before: Path | None, runs: int) -> dict[str, dict[str, float]]:
    """Return the least CPU times of each command."""
    found = {}
    for name, target in TARGETS.items():
        words = [str(run) if word == "RUN" else word for word in name.split()]
        jobs = {
            "cpu_s": (MAIN, words, history.ROOT),
            "libraries_s": (LIBRARIES[name], [], history.ROOT),
        }
        if before is not None:
            jobs["before_s"] = (MAIN, words, before)
        rounds = [{job: cpu_s(*each) for job, each in jobs.items()} for _ in range(runs)]
        found[name] = {job: min(each[job] for each in rounds) for job in jobs}
        found[name]["target"] = target
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, metavar="DIR", help="A checkout to compare with.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--unjudged", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        run = Path(name) / "run"
        on = [word for profile in PROFILES for word in ("--on", profile)]
        lab = ["--lab", "fake:noise=0.01", "-r", "3", "--out", str(run)]
        cpu_s(MAIN, ["compare", *lab, *on, "--", "true"], history.ROOT)
        found = measured(run, asked.before, asked.runs)
    is_over = False
    for name, each in found.items():
        print(f"{name}: {each['cpu_s']:.3f} s, of which libraries {each['libraries_s']:.3f} s")
        if "before_s" in each:
            share = each["cpu_s"] / each["before_s"]
            print(f"  {share:.2f} of {each['before_s']:.3f} s (target {each['target']:.2f})")
            is_over |= share > each["target"]
    history.append("start", found)
    if is_over and not asked.unjudged:
        sys.exit("over the budget")


if __name__ == "__main__":
    main()
