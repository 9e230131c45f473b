"""Options of `fscost compare` and their defaults. `fscost compare --help` imports nothing else of
this room."""

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

AUTO = "auto"
DEFAULT_PROFILES = ("ext4", "ext4 -o noatime", "ext4 -O ^has_journal", "xfs", "btrfs")
DEFAULT_WORKLOAD = "small-files"


@dataclass(frozen=True)
class Request:
    """Request with one field for each option that determines the measurement or its length. Field
    names are option names. The bounds of repetitions are those of `run.StoppingRule`."""

    on: tuple[str, ...] = ()
    design: str = "full"
    baseline: str | None = None
    workload: str | None = None
    command: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    conclude: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    name: str | None = None
    env: tuple[str, ...] = ()
    ignore_failure: bool = False
    warmup: int = 0
    per: str | None = None
    fill: str | None = None
    age: int | None = None
    aged: float | None = None
    scale: float | None = None
    source: str | None = None
    set: tuple[str, ...] = ()
    seed: int = 0
    size: str | None = None
    min_repetitions: int = 3
    max_repetitions: int = 10
    max_minutes: float = 15.0
    metric: str = "device_write_bytes"
    precision: float = 0.02
    settle: str | None = None
    drop_caches: bool = False
    probe: int | None = None
    keep: str = "one"
    device: str | None = None
    timeout: str | None = None
    max_recording: str | None = None
    writable: tuple[str, ...] = ()
    network: bool = False
    ssd: str | None = None
    kernel: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    disk: tuple[str, ...] = ()
    logical_block_size: int | None = None
    physical_block_size: int | None = None

    def command_line(self) -> str:
        """Return the command line of this request, without defaults."""
        words = ["fscost", "compare"]
        for name, value in asdict(self).items():
            if name == "command" or value == getattr(Request, name):
                continue
            option = f"--{name.replace('_', '-')}"
            values = value if isinstance(value, tuple) else (value,)
            words += (
                [option]
                if value is True
                else [word for each in values for word in (option, str(each))]
            )
        return shlex.join([*words, "--", *self.command] if self.command else words)

    def to_json(self) -> dict[str, Any]:
        """Return the request in the manifest's form."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class Place:
    """Place of a run, and permissions there. `crash`: also cut the power of its profiles.
    `on_cluster`: address of the cluster whose machines run the cells. `recordings_to`: URL of the
    store that receives their recordings. `max_cells`: refuse runs that
    could take more cells in all."""

    lab: str
    out: Path | None = None
    resume: Path | None = None
    trust: bool = False
    erase_device: tuple[str, ...] = ()
    force: bool = False
    dry_run: bool = False
    wait: bool = False
    crash: bool = False
    on_cluster: str | None = None
    recordings_to: str | None = None
    max_cells: int | None = None
    show_output: bool = False
