"""Cost of a guest beyond the work done in it: seconds for a cell that does almost nothing, restored
and booted, and the host's memory beyond the guest's.

Budget (emulated): 3 s a cell over the workload's own time, with KVM 1 s; 512 MiB of memory beyond
the guest's. `make bench ARGS='vm --cells 5'`.
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import history  # beside this file

from fscost.lab.base import CellResult, LabOptions
from fscost.lab.vm import VmLab, snapshot
from fscost.lab.vm.qemu import MEMORY_BYTES
from fscost.matrix import Cell
from fscost.profile import resolve
from fscost.workload import command

MIB = 1 << 20


class Peak:
    """Maximum total resident memory of this process's descendants: QEMU, with the guest memory
    touched so far, and the disk server."""

    def __init__(self) -> None:
        self.bytes = 0
        self._done = threading.Event()

    def look(self) -> None:
        """Sample the memory until told to stop."""
        while not self._done.wait(0.05):
            self.bytes = max(self.bytes, sum(map(_resident_bytes, _children())))

    def stop(self) -> None:
        """Stop sampling."""
        self._done.set()


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Yield the peak memory of all children while the block runs."""
    peak = Peak()
    thread = threading.Thread(target=peak.look)
    thread.start()
    try:
        yield peak
    finally:
        peak.stop()
        thread.join()


def _children() -> list[int]:
    return [
        int(pid) for task in Path("/proc/self/task").iterdir() for pid in _words(task / "children")
    ]


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _resident_bytes(pid: int) -> int:
    fields = (
        dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if Path(f"/proc/{pid}").exists()
        else {}
    )
    return int(fields.get("VmRSS", "0 kB").split()[0]) * 1024


def run(lab: VmLab, profile: str, number: int, folder: Path) -> tuple[CellResult, float]:
    """Run one cell that writes one file; return its result and its duration."""
    cell = Cell(resolve(profile), command(["sh", "-c", "echo x > file"]), number, number, number)
    begin = time.monotonic()
    result = lab.run(
        cell, LabOptions(cell_dir=folder / f"cell{number}", disk_size_bytes=1 << 30), lambda _: None
    )
    took_s = time.monotonic() - begin
    if result.status != "done":
        raise SystemExit(f"{profile}: {result.because}")
    return result, took_s


def main() -> None:
    """Print a table, and save it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--profile", default="ext4")
    asked = parser.parse_args()
    lab = VmLab(say=print)
    found = {}
    with tempfile.TemporaryDirectory(prefix="fscost-bench-") as folder:
        run(lab, asked.profile, 0, Path(folder))  # makes the snapshot
        for how in ("restored", "booted"):
            if how == "booted":
                snapshot.Snapshot.restore = snapshot.Snapshot.boot  # type: ignore[method-assign]
            times_s, virtual_s, beyond = [], [], []
            for number in range(1, asked.cells + 1):
                with peak_memory() as peak:
                    result, took_s = run(
                        lab, asked.profile, number + (how == "booted") * asked.cells, Path(folder)
                    )
                times_s.append(took_s)
                virtual_s.append(
                    sum(
                        each.value
                        for each in result.samples
                        if each.metric == "wall_s" and not each.disk
                    )
                )
                beyond.append(max(0, peak.bytes - MEMORY_BYTES))
            found[how] = {
                "cell_s": times_s,
                "virtual_s": virtual_s,
                "memory_beyond_guest_bytes": beyond,
                "peak_bytes": peak.bytes,
            }
            print(
                f"{asked.profile}, {how}: {statistics.median(times_s):.2f} s a cell"
                f" ({min(times_s):.2f} to {max(times_s):.2f}), of which"
                f" {statistics.median(virtual_s):.2f} virtual s in mkfs, mount and the command;"
                f" {peak.bytes / MIB:.0f} MiB resident with the guest's; n = {asked.cells}, load"
                f" {os.getloadavg()[0]:.1f}"
            )
    out = history.FOLDER
    out.mkdir(exist_ok=True)
    (out / "vm.json").write_text(json.dumps(found, indent=1) + "\n")
    history.append("vm", found)


if __name__ == "__main__":
    main()
