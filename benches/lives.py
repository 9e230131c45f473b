"""Time of `fscost wear` for each device of the catalogue, against the issue's budget: less than
30 s for a recording of a 512 MiB disk. Needs root, to make the recording.

The recording is one of random writes of 4 KiB with fsync, which a device has to collect, in the
default placement: the disk's addresses, on a device whose log blocks and open units keep their
number (docs/wear.md). Sizes and times are of the whole command.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import history  # beside this file

BUDGET_S = 30.0
FSCOST = str(Path(sys.executable).with_name("fscost"))
FIO = (
    "fio --name=j --filename=f --size={size} --bs=4k --rw=randwrite --randseed=3"
    " --fsync=16 --io_size={written} >&2"
)


def main() -> int:
    """Print a row for each device; return 1 if one misses the budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--written", default="512M", help="bytes that the job writes")
    parser.add_argument("--unjudged", action="store_true", help="exit with 0 whatever the budgets")
    parser.add_argument("devices", nargs="*", help="(default: all that have wear)")
    asked = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'device':30}{'capacity':>12}{'WA':>8}{'wall':>9}{'CPU':>9}")
    found = {}
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as name:
        recording = recorded(Path(name) / "run", asked.written)
        for device, capacity_bytes in devices(asked.devices):
            each = answered(recording, device)
            found[device] = each
            sizes = f"{capacity_bytes / 1e9:9.0f} GB{each['write_amplification']:8.2f}"
            print(f"{device:30}{sizes}{each['wall_s']:8.2f}s{each['cpu_s']:8.2f}s", flush=True)
    history.append("lives", found)
    missed = [device for device, each in found.items() if each["wall_s"] >= BUDGET_S]
    print(f"budget: {BUDGET_S:.0f} s for each; missed: {', '.join(missed) or 'none'}")
    return int(bool(missed) and not asked.unjudged)


def recorded(run: Path, written: str) -> Path:
    """Record the job, and return its recording."""
    command = FIO.format(size="256M", written=written)
    words = ["compare", "--on", "ext4", "--size", "512M", "--lab", "native", "-r", "1"]
    words += ["--keep", "all", "--out", str(run), "--", "sh", "-c", command]
    subprocess.run([FSCOST, *words], check=True, capture_output=True)
    [cell] = json.loads((run / "manifest.json").read_text())["cells"]
    return run / str(cell["recording"])


def devices(asked: list[str]) -> list[tuple[str, int]]:
    """Return the names and capacities of the devices that have wear."""
    answer = subprocess.run([FSCOST, "devices", "--json"], check=True, capture_output=True)
    found = {
        each["name"]: int(each["wear"]["capacity_bytes"])
        for each in json.loads(answer.stdout)["devices"]
        if each["wear"]
    }
    return [(name, found[name]) for name in asked or found]


def answered(recording: Path, device: str) -> dict[str, Any]:
    """Ask for a device's wear, and return its write amplification and the time of the answer."""
    command = [FSCOST, "wear", str(recording), "--ssd", device, "--per-day", "10GB", "--json"]
    begin, before = time.monotonic(), os.times()
    answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    after = os.times()
    [entry] = answer["entries"]
    return {
        "write_amplification": entry["device_amplification"],
        "wall_s": time.monotonic() - begin,
        "cpu_s": sum(after[2:4]) - sum(before[2:4]),
    }


if __name__ == "__main__":
    sys.exit(main())
