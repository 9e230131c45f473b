"""A runner to be killed: one cell in a guest, in a process of its own.

`one_guest_cell.py PROFILE OUT LINGER_S` prints how the cell ended. It is the counterpart of
one_cell.py, which uses the native lab; guests are slower, so there is less work.
"""

import sys
from pathlib import Path

from fscost import profile
from fscost.lab.base import LabOptions
from fscost.lab.vm import VmLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

SHELL = (
    "set -e; for i in 1 2 3 4 5; do dd if=/dev/zero of=f$i bs=64k count=4 conv=fsync status=none;"
    " done"
)


def main() -> None:
    spelled, out, linger_s = sys.argv[1:]
    steps = (
        Step("first", SHELL, settle="remount"),
        Step("second", f"rm -f f*; {SHELL}; sleep {linger_s}"),
    )
    cell = Cell(
        profile.resolve(spelled),
        Workload("mine", steps, disk_bytes=1 << 20),
        repetition=0,
        seed=1,
        order=0,
    )
    result = VmLab(say=lambda words: print(words, flush=True)).run(
        cell, LabOptions(Path(out), disk_size_bytes=320 << 20), lambda step: print(step, flush=True)
    )
    print(result.status, result.kind, result.because.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
