"""Record one cell: `record.py OUT PROFILE NAME=SHELL…`. Each step is measured, and ends with a remount, so that its image is clean."""  # noqa: INP001 a script

import sys
from pathlib import Path

from fscost import profile
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload


def main() -> None:
    out, spelled, *lines = sys.argv[1:]
    steps = tuple(
        Step(name, shell, settle="remount")
        for name, _, shell in (line.partition("=") for line in lines)
    )
    cell = Cell(
        profile.resolve(spelled),
        Workload("mine", steps, disk_bytes=1 << 20),
        repetition=0,
        seed=1,
        order=0,
    )
    result = NativeLab(find_binaries()).run(
        cell,
        LabOptions(Path(out), disk_size_bytes=512 << 20, keep_recording=True),
        lambda step: None,
    )
    if result.status != "done":
        sys.exit(f"{result.status} ({result.kind}): {result.because}")


if __name__ == "__main__":
    main()
