"""Interface of a lab: it runs one cell and returns the outcome. Labs never read results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fscost.capture import RecordedInterval
from fscost.matrix import Cell
from fscost.profile.model import Profile

VIRTUAL_UNITS = {"s": "virtual_s", "ns": "virtual_ns"}
"""Units of times in an emulated guest, whose clock counts one nanosecond per instruction. They are
not times of any device."""
ALL_PHASES = "total"
"""Phase of a sample that covers all measured phases together."""


@dataclass(frozen=True)
class Sample:
    """One measured number of one interval of one cell. `disk` is empty for sums over all disks and
    for metrics that have no disk."""

    phase: str
    measured: bool
    disk: str
    metric: str
    unit: str
    value: float


@dataclass
class CellResult:
    """Outcome of a cell. `status` is done, failed or skipped; `because` gives the reason for the
    last two."""

    cell: Cell
    status: str
    because: str = ""
    samples: list[Sample] = field(default_factory=list)
    totals: list[Sample] = field(default_factory=list)
    """Samples of all measured phases together, for metrics whose total is not the sum over the
    phases."""
    facts: dict[str, Any] = field(default_factory=dict)
    """JSON-compatible facts about what the kernel really did: mountinfo, features, queue, device
    model, commands."""
    recorded: Sequence[RecordedInterval] = ()
    """Bytes in the recording by interval, if the cell was recorded."""
    recording: Path | None = None
    output: Path | None = None
    keep_recording: bool = False
    """True if the recording is worth keeping for investigation, whatever the options say."""
    kind: str = ""
    """Kind of failure: the `kind` of the agent's `failed` event (docs/cell-protocol.md). Cells that
    fail in `mkfs` or `mount` are not tried again."""


@dataclass(frozen=True)
class LabOptions:
    """Options for running one cell."""

    cell_dir: Path
    disk_size_bytes: int
    settle: str | None = None
    drop_caches: bool = False
    probe_interval_ms: int | None = None
    device: Path | None = None
    timeout_s: float | None = None
    """Time limit of the whole cell by the host's clock. None: each step has the limit of its
    workload."""
    device_models: Mapping[str, str] = field(default_factory=dict)
    """TOML text of each device model that a disk of the run names."""
    max_recording_bytes: int | None = None
    """Size at which a cell's recording is ended. None: only the host's free space limits it."""
    writable: tuple[Path, ...] = ()
    """Host folders that steps may write to (native lab)."""
    network: bool = False
    """Give steps the host's network (native lab)."""


class Site(Protocol):
    """A place where cells run: answers about it, before a cell begins there."""

    name: str

    @property
    def side_by_side(self) -> int:
        """Number of cells that may run at once without affecting each other's measurements. Valid
        only after `check`."""
        ...

    @property
    def is_same_everywhere(self) -> bool:
        """True if a cell writes the same bytes on every machine, so that cells of different
        machines may be compared. Valid only after `check`."""
        ...

    def guess_s(self, write_bytes: int) -> float:
        """Estimate the seconds that a cell takes if it writes this many bytes. Measured times
        replace the estimate as soon as there are any."""
        ...

    def check(self) -> None:
        """Raise HostError if no cell at all can run here."""
        ...

    def unsupported_reason(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """Return None if the cell can run here on a disk of this size; otherwise what is missing
        and what would enable it."""
        ...

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Return every command that running the cell would execute, as shell text for
        --dry-run."""
        ...

    def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
        """Describe the environment of a run of these profiles for the manifest: kernel, CPU,
        versions of mkfs."""
        ...


class Lab(Site, Protocol):
    """A lab, in which cells run."""

    def interrupt(self) -> None:
        """End all running cells, from another thread: each `run` returns soon, or raises. No
        further cell is run."""
        ...

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        """Run the cell, and keep the recording if the cell is done. `on_step` receives the name of
        each interval as it begins. Raises HostError if no cell can run.

        On KeyboardInterrupt, the cell is ended and waited for before the exception propagates.
        """
        ...
