"""Speed of the array model for writes: requests a second of CPU time, and bytes written to the
members for each byte of the host.

    benches/raid.py [LEVEL …]        (default: all)

Chunks of 64 KiB, arrays of 64 GiB a member, md's defaults. The issue names no budget. A recording
is read at 0.3 million requests a second (`benches/explain.py`), and the model must not be the
bottleneck: it needs at least three times that rate.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import history  # beside this file
from wear import ROOT, build

LEAST_M_REQUESTS = 1.0
ARRAYS = (
    ("raid0", 3, 1.0),
    ("raid1", 2, 2.0),
    ("raid10", 4, 2.0),
    ("raid5", 3, 1.5),
    ("raid6", 6, 1.5),
)
"""Level, members, and bytes written for each byte of full stripes."""
_LINE = re.compile(r"([\d.]+) M requests/s, ([\d.]+) GiB/s of the host, ([\d.]+) bytes written")


def main() -> None:
    """Print the table; exit 1 if the model is too slow or writes the wrong number of bytes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help="of these alone")
    parser.add_argument("--unjudged", action="store_true", help="ignore the speed")
    asked = parser.parse_args()
    program = build("fscost-raid") / "array_speed"
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; times are CPU time")
    print(f"{'':8}{'members':>8}{'4 KiB at random':>24}{'1 MiB in order':>24}")
    print(f"{'':16}{'M requests/s':>16}{'written':>8}{'GiB/s':>16}{'written':>8}")
    wrong = []
    figures = {}
    for level, members, whole in ARRAYS:
        if asked.levels and level not in asked.levels:
            continue
        found = {}
        for kind in ("random", "sequential"):
            command: list[str | Path] = [program, level, str(members), kind]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
            [numbers] = _LINE.findall(answer.stdout)
            found[kind] = [float(number) for number in numbers]
        (requests, _, random), (_, speed, sequential) = found["random"], found["sequential"]
        print(f"{level:8}{members:8}{requests:16.2f}{random:8.2f}{speed:16.1f}{sequential:8.2f}")
        figures[f"{level} {members}"] = found
        if requests < LEAST_M_REQUESTS and not asked.unjudged:
            wrong.append(f"{level}: {requests:.2f} M requests/s, {LEAST_M_REQUESTS:.0f} wanted")
        if abs(sequential - whole) > 0.001:
            wrong.append(f"{level}: writes {sequential:.4f} times the bytes, {whole} expected")
    history.append("raid", figures)
    if wrong:
        sys.exit("; ".join(wrong))


if __name__ == "__main__":
    main()
