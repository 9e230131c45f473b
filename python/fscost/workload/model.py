"""Steps and workloads that run on the file system under test."""

from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """One shell command, run with its working directory on the file system under test.

    The agent replaces `{dir}`, `{input}` and `{scratch}` in `shell` (see docs/cell-protocol.md).
    """

    name: str
    shell: str
    measured: bool = True
    settle: str = "sync"  # sync | remount | none
    drop_caches: bool = False  # before the step
    timeout_s: int = 1800
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Recipe:
    """Recipe for files that the host prepares once per run for the steps to read. `workload.inputs`
    makes them; the same recipe always makes the same bytes."""

    name: str
    values: tuple[tuple[str, str | int], ...] = ()
    source: Path | None = None


@dataclass(frozen=True)
class Workload:
    """Named steps and their requirements.

    `inputs.prepare` makes the input that `recipe` describes (None: no files needed), and its result
    goes into `input`. `disk_bytes` is the smallest file system on which the workload fits.
    `write_bytes_estimate` is the approximate number of bytes that one cell writes to the device
    (None: unknown); the estimate of host space shown before a run is based on it.
    """

    name: str
    steps: tuple[Step, ...]
    summary: str = ""
    scale: float = 1.0
    seed: int = 0
    recipe: Recipe | None = None
    input: Path | None = None
    options: tuple[tuple[str, str | int], ...] = ()
    disk_bytes: int = 1 << 30
    write_bytes_estimate: int | None = None
    needs_tools: tuple[str, ...] = field(default=())
    only_types: tuple[str, ...] = field(default=())  # empty: any file system

    def before_measured(self, step: Step) -> "Workload":
        """Insert a step before the first measured one, or at the end if there is none."""
        first = next((at for at, each in enumerate(self.steps) if each.measured), len(self.steps))
        return replace(self, steps=(*self.steps[:first], step, *self.steps[first:]))
