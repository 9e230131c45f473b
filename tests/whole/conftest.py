"""Real cells: the real agent, the real disk server, real file systems."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fscost import profile
from fscost.errors import HostError
from fscost.lab.base import CellResult, Lab, LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab, RealDevice
from fscost.lab.vm import VmLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

from .kill_soak import cache_without_snapshots

MIB = 1 << 20


@dataclass
class Bench:
    """Runs cells, each in its own folder."""

    out: Path
    device: RealDevice | None = None
    lab: Lab | None = None
    """Lab used in place of the native one."""
    begun: list[str] = field(default_factory=list)
    """Intervals of the last cell, in the order they began."""

    def cell(
        self,
        spelled: str,
        *steps: Step | str,
        seed: int = 7,
        repetition: int = 0,
        **workload: object,
    ) -> Cell:
        """Build a cell; a shell line becomes a measured step `work`."""
        made = tuple(
            Step(f"work{number or ''}", step) if isinstance(step, str) else step
            for number, step in enumerate(steps)
        )
        return Cell(
            profile.resolve(spelled),
            Workload("mine", made, disk_bytes=MIB, **workload),
            repetition,
            seed,
            0,
        )  # type: ignore[arg-type]

    def options(self, **changes: object) -> LabOptions:
        number = len(list(self.out.glob("cell*")))
        defaults: dict[str, object] = {
            "cell_dir": self.out / f"cell{number}",
            "disk_size_bytes": 512 * MIB,
        }
        return LabOptions(**(defaults | changes))  # type: ignore[arg-type]

    def lab_of(self) -> Lab:
        return self.lab or NativeLab(find_binaries(), self.device)

    def run(self, cell: Cell, **changes: object) -> CellResult:
        self.begun = []
        return self.lab_of().run(cell, self.options(**changes), self.begun.append)

    def done(self, cell: Cell, **changes: object) -> CellResult:
        """Run a cell and assert that it succeeds: no root test passes by skipping."""
        result = self.run(cell, **changes)
        assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
        return result


def restless(cell: Cell) -> Cell:
    """Return the cell with a background process that never stops writing."""
    writer = (
        "sh",
        "-c",
        (
            "while :; do dd if=/dev/zero of={dir}/restless bs=4k count=50000 conv=notrunc"
            " oflag=direct status=none; done"
        ),
    )
    return replace(cell, profile=replace(cell.profile, background=(writer,)))


Value = Callable[..., float]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    try:
        find_binaries()
    except HostError as error:
        pytest.fail(f"build first: {error}")
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def vm_lab() -> VmLab:
    """A VM lab with the user's own cache, so that its snapshot is made once and its kernel is
    downloaded once for all runs."""
    return VmLab(say=print)


@pytest.fixture
def guests(bench: Bench, vm_lab: VmLab) -> Bench:
    bench.lab = vm_lab
    return bench


@pytest.fixture
def no_snapshots(tmp_path: Path, vm_lab: VmLab) -> Path:
    return cache_without_snapshots(tmp_path)


@pytest.fixture
def value() -> Value:
    """Return one number of a result, selected by phase, metric and disk."""

    def find(result: CellResult, phase: str, metric: str, disk: str = "") -> float:
        [found] = [
            sample.value
            for sample in result.samples
            if (sample.phase, sample.metric, sample.disk) == (phase, metric, disk)
        ]
        return found

    return find
