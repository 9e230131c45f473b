"""A runner to be killed: one cell in a process of its own.

`one_cell.py PROFILE OUT LINGER_S` prints how the cell ended. Its last command sleeps for
`LINGER_S`, so a process that is not killed with it still exists when the test looks. The step ends
if any of its programs is killed (`set -e`).
"""

import sys
from pathlib import Path

from fscost import profile
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

SHELL = (
    "set -e; for i in $(seq 40); do dd if=/dev/urandom of=f$i bs=64k count=4 conv=fsync"
    " status=none; done"
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
    result = NativeLab(find_binaries()).run(
        cell, LabOptions(Path(out), disk_size_bytes=320 << 20), lambda step: print(step, flush=True)
    )
    if result.status != "done" and result.output is not None:
        print(result.output.read_text())
    print(result.status, result.kind, result.because, flush=True)


if __name__ == "__main__":
    main()
