"""Time of `fscost wear` for each device of the catalogue, against the issue's budget: less than
30 s for the writes of a 512 MiB disk, on the device at its real size.

The writes are of 4 KiB at random places, which a device has to collect, in a trace. Block-mapped
and log-block devices have their real size in any case; the others get a disk of their own size, or
of 64 GiB, beyond which another unit only takes memory. Times are those of the whole command.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import history  # beside this file

BUDGET_S = 30.0
FSCOST = str(Path(sys.executable).with_name("fscost"))
MOST_BYTES = 64 << 30
BLOCK_BYTES, REGION_BYTES = 4096, 512 << 20


def main() -> int:
    """Print a row for each device; return 1 if one misses the budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--writes", type=int, default=REGION_BYTES // BLOCK_BYTES)
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    parser.add_argument("devices", nargs="*", help="(default: all that have wear)")
    asked = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'device':32}{'modelled':>12}{'WA':>8}{'wall':>9}{'CPU':>9}")
    found = {}
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        trace = Path(name) / "trace.csv"
        write_trace(trace, asked.writes)
        for device, capacity_bytes in devices(asked.devices):
            each = answered(trace, device, min(capacity_bytes, MOST_BYTES))
            found[device] = each
            sizes = f"{each['modelled_bytes'] / 1e9:9.0f} GB{each['write_amplification']:8.2f}"
            print(f"{device:32}{sizes}{each['wall_s']:8.2f}s{each['cpu_s']:8.2f}s", flush=True)
    history.append("lives", found)
    missed = [device for device, each in found.items() if each["wall_s"] >= BUDGET_S]
    print(f"budget: {BUDGET_S:.0f} s for each; missed: {', '.join(missed) or 'none'}")
    return int(bool(missed) and not asked.unjudged)


def write_trace(trace: Path, writes: int) -> None:
    """Write a trace of random writes, in the format of MSR Cambridge: times are in 100 ns."""
    chosen = random.Random(3)
    with trace.open("w") as out:
        for number in range(writes):
            offset = chosen.randrange(REGION_BYTES // BLOCK_BYTES) * BLOCK_BYTES
            out.write(f"{number * 1000},bench,0,Write,{offset},{BLOCK_BYTES},1\n")


def devices(asked: list[str]) -> list[tuple[str, int]]:
    """Return the names and capacities of the devices that have wear."""
    answer = subprocess.run([FSCOST, "devices", "--json"], check=True, capture_output=True)
    found = {
        each["name"]: int(each["wear"]["capacity_bytes"])
        for each in json.loads(answer.stdout)["devices"]
        if each["wear"]
    }
    return [(name, found[name]) for name in asked or found]


def answered(trace: Path, device: str, disk_bytes: int) -> dict[str, Any]:
    """Ask for a device's wear, and return its size, its write amplification and the time of the
    answer."""
    command = [FSCOST, "wear", str(trace), "--ssd", device, "--disk-size", str(disk_bytes)]
    begin, before = time.monotonic(), os.times()
    ended = subprocess.run([*command, "--json"], check=True, capture_output=True)
    after = os.times()
    [entry] = json.loads(ended.stdout)["entries"]
    return {
        "modelled_bytes": entry["geometry"]["logical_units"] * entry["geometry"]["unit_bytes"],
        "write_amplification": entry["device_amplification"],
        "wall_s": time.monotonic() - begin,
        "cpu_s": sum(after[2:4]) - sum(before[2:4]),
    }


if __name__ == "__main__":
    sys.exit(main())
