"""What a lab is to the rest: it runs one cell and says what happened. Labs never read results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fscost.capture import RecordedInterval
from fscost.matrix import Cell
from fscost.profile.model import Profile

VIRTUAL_UNITS = {"s": "virtual_s", "ns": "virtual_ns"}
"""Units of times in an emulated guest, whose clock counts instructions, one a nanosecond: they are
times of no device."""
ALL_PHASES = "total"
"""Phase of a sample that is about all measured phases together."""


@dataclass(frozen=True)
class Sample:
    """One measured number of one interval of one cell. `disk` is empty for sums and for what has no
    disk."""

    phase: str
    measured: bool
    disk: str
    metric: str
    unit: str
    value: float


@dataclass
class CellResult:
    """`status` is done, failed or skipped; `because` says why for the last two."""

    cell: Cell
    status: str
    because: str = ""
    samples: list[Sample] = field(default_factory=list)
    totals: list[Sample] = field(default_factory=list)
    """Of all measured phases together, where that is no sum of theirs."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the kernel really did: mountinfo, features, queue, device model, commands; JSON-able."""
    recorded: Sequence[RecordedInterval] = ()
    """What the recording holds, by interval; of a cell that was recorded and is being looked at."""
    recording: Path | None = None
    output: Path | None = None
    keep_recording: bool = False
    """Whether somebody will want to look at the recording, whatever the options say."""
    kind: str = ""
    """Of a failed cell: the `kind` of the agent's `failed` event (docs/cell-protocol.md); `mkfs`
    and `mount` are not tried again."""


@dataclass(frozen=True)
class LabOptions:
    """How one cell is run. `keep_recording` decides for this cell whether its recording stays after
    its tables are made."""

    cell_dir: Path
    disk_size_bytes: int
    settle: str | None = None
    drop_caches: bool = False
    probe_interval_ms: int | None = None
    keep_recording: bool = False
    device: Path | None = None
    timeout_s: float | None = None
    """Limit of the whole cell by the host's clock; None: each step has the limit of its
    workload."""
    device_models: Mapping[str, str] = field(default_factory=dict)
    """Text of each device model that a disk of the run names, as TOML."""
    max_recording_bytes: int | None = None
    """Size at which the recording of a cell ends it; None: only the host's free space limits it."""
    writable: tuple[Path, ...] = ()
    """Folders of the host that steps may write to (native lab)."""
    network: bool = False
    """Give steps the host's network (native lab)."""
    look: Callable[[CellResult, Path], None] | None = None
    """Shown a cell that is done and its recording, before that is packed or removed; may add
    samples and facts, or fail the cell."""


class Lab(Protocol):
    """A place where cells run."""

    name: str

    @property
    def side_by_side(self) -> int:
        """How many cells may run at once without one changing what is measured of another. Asked
        after `check`."""
        ...

    def interrupt(self) -> None:
        """End what runs side by side, from another thread: each `run` returns soon, or raises.
        Nothing is run afterwards."""
        ...

    def guess_s(self, write_bytes: int) -> float:
        """What a cell that writes so much may take; measured times replace it as soon as there are
        any."""
        ...

    def check(self) -> None:
        """Raise HostError when no cell at all can run here."""
        ...

    def why_not(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """None when the cell can run here, on a disk of that size; else what is missing and what
        would enable it."""
        ...

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Every command `run` would execute, as shell text, for --dry-run."""
        ...

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        """Run the cell; `on_step` hears the name of each interval as it begins. Raises HostError
        when no cell can run.

        On KeyboardInterrupt the cell is ended, and waited for, before the exception goes on.
        """
        ...

    def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
        """Of a run of these profiles: kernel, CPU, versions of mkfs; kept in the manifest."""
        ...
