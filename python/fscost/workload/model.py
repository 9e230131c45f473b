"""What runs on the file system under test."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """One shell command, run with its working directory on the file system under test.

    `{dir}`, `{input}` and `{scratch}` in `shell` are replaced by the agent (see
    docs/cell-protocol.md).
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
    """What the host prepares once per run for the steps to read: `workload.inputs` makes it, the
    same bytes for the same recipe."""

    name: str
    values: tuple[tuple[str, str | int], ...] = ()
    source: Path | None = None


@dataclass(frozen=True)
class Workload:
    """Named steps, with what they need.

    `recipe` (None: needs no files) is made by `inputs.prepare`, whose result goes into `input`;
    `disk_bytes` is the smallest file system the
    workload fits on; `write_bytes_estimate` (None: unknown) is what one cell writes to the device,
    roughly, for the estimate of
    host space shown before a run.
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
