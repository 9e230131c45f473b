"""The agent's plan of one cell (docs/cell-protocol.md)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fscost.errors import InputError
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import Binaries
from fscost.matrix import Cell
from fscost.profile.model import DiskSpec, FormatPlan
from fscost.workload.model import Step

VERSION = 1
BETWEEN_STEPS_S = 1800  # mkfs, mount, settling and unmounting have no limit of their own
RECORDING = "recording.fscost"
PROBE_ALONE = Step("probe-alone", "sleep 2", measured=False, timeout_s=60)
"""Step before the phases of a probed cell: it runs the probe on an idle file system, to show what
the probe itself writes."""


@dataclass(frozen=True)
class Paths:
    """Paths of the files of one cell."""

    cell_dir: Path

    @property
    def recording(self) -> Path:
        """Recording of every request, with its content."""
        return self.cell_dir / RECORDING

    @property
    def requests(self) -> Path:
        """Table of every request, without its content."""
        return self.cell_dir / "requests.parquet"

    def model(self, disk: str) -> Path:
        """Device model of a disk."""
        return self.cell_dir / f"{disk}.toml"

    @property
    def output(self) -> Path:
        """Output of the commands."""
        return self.cell_dir / "output.log"

    @property
    def agent_errors(self) -> Path:
        """Error output of the agent and the disk server."""
        return self.cell_dir / "agent.log"


@dataclass(frozen=True)
class Place:
    """Environment in which the agent runs, as its plan describes it: this machine, or a guest."""

    parent_pid: int
    log: str
    base: str
    input: str | None
    disk_server: Sequence[str] | None
    devices: Mapping[str, str]
    """Disks that are block devices already, by name. The others are loop devices on files that the
    disk server provides."""
    identity: Mapping[str, int] | None = None
    """Identity of such a device, which the agent compares with the descriptor that it opens
    itself."""
    is_new: bool = False
    """True if these devices were created for this cell."""
    is_emulated: bool = False
    """True if the clock counts instructions."""
    owns_kernel: bool = False
    """True if the kernel runs only for this cell."""
    outside_sync_calls: Sequence[str] = ()
    """System calls by which programs outside the cell write back its file system."""


def disk_sizes_bytes(cell: Cell, disk_size_bytes: int) -> dict[str, int]:
    """Return the size of each disk of the profile."""
    return {disk.name: disk.size_bytes or disk_size_bytes for disk in cell.profile.disks}


def disk_server(
    cell: Cell,
    options: LabOptions,
    binaries: Binaries,
    identities: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> list[str]:
    """Build the command of the disk server. `identities`: identities of real devices, by path."""
    sizes = disk_sizes_bytes(cell, options.disk_size_bytes)
    command = [
        str(binaries.disk),
        "serve",
        "--recording",
        str(Paths(options.cell_dir).recording.absolute()),
    ]
    if options.max_recording_bytes is not None:
        command += ["--max-recording", str(options.max_recording_bytes)]
    for disk in cell.profile.disks:
        command += [
            "--disk",
            f"{disk.name}={sizes[disk.name]},logical={disk.logical_block_bytes},physical={disk.physical_block_bytes}",
        ]
    return command + _timing(cell, Paths(options.cell_dir.absolute()), identities)


def timed_disks(cell: Cell) -> list[DiskSpec]:
    """Disks that have a device model, or a real device behind them."""
    return [disk for disk in cell.profile.disks if disk.model]


def modelled_disks(cell: Cell) -> list[DiskSpec]:
    """Disks that have a device model."""
    return [disk for disk in timed_disks(cell) if not disk.device]


def real_disks(cell: Cell) -> list[DiskSpec]:
    """Disks whose requests a real device carries out."""
    return [disk for disk in timed_disks(cell) if disk.device]


def remove_timing(cell: Cell, paths: Paths) -> None:
    """Remove the device models of a cell's disks."""
    for disk in timed_disks(cell):
        paths.model(disk.name).unlink(missing_ok=True)


def _timing(cell: Cell, paths: Paths, identities: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Build the disk server's arguments for models and real devices; empty if no disk has one."""
    words = []
    for disk in modelled_disks(cell):
        words += ["--model", f"{disk.name}={paths.model(disk.name)}"]
    for disk in real_disks(cell):
        identity = identities[disk.device]
        numbers = ",".join(str(identity[key]) for key in ("major", "minor", "diskseq"))
        words += ["--device", f"{disk.name}={disk.device},{numbers}"]
    if words:
        words += ["--seed", str(cell.seed)]
    return words


def build(cell: Cell, options: LabOptions, formatted: FormatPlan, place: Place) -> dict[str, Any]:
    """Build the plan of one cell. Every command is complete except for the placeholders that the
    agent fills in."""
    return {
        "version": VERSION,
        "parent_pid": place.parent_pid,
        "log": place.log,
        "base": place.base,
        "input": place.input,
        "writable": [str(path) for path in options.writable],
        "has_network": options.network,
        "disk_server": None if place.disk_server is None else list(place.disk_server),
        "disks": [_disk(disk, place) for disk in cell.profile.disks],
        "mkfs": [list(command) for command in formatted.mkfs],
        "mount": {
            "type": formatted.mount_type,
            "device": formatted.mount_device,
            "options": formatted.mount_options,
        },
        "after_mount": [list(command) for command in formatted.after_mount],
        "background": [list(command) for command in formatted.background],
        "after_unmount": [list(command) for command in formatted.after_unmount],
        "sync_tracepoints": list(formatted.sync_tracepoints),
        "outside_sync_calls": list(place.outside_sync_calls),
        "commit_s": _commit_s(formatted.mount_options),
        "is_emulated": place.is_emulated,
        "owns_kernel": place.owns_kernel,
        "inspect": [
            {"name": name, "command": list(command)} for name, command in formatted.inspect
        ],
        "steps": [_step(step, cell, options) for step in cell.workload.steps],
    }


def with_probe_alone(cell: Cell, options: LabOptions) -> Cell:
    """Insert `PROBE_ALONE` before the cell's first phase if a probe is requested."""
    if options.probe_interval_ms is None:
        return cell
    return replace(cell, workload=cell.workload.before_measured(PROBE_ALONE))


def interval_names(cell: Cell) -> list[str]:
    """Names of the intervals that a complete cell reports, in order."""
    return ["mkfs", "mount", *(step.name for step in cell.workload.steps)]


def deadline_s(cell: Cell, options: LabOptions, slowness: float = 1) -> float:
    """Seconds after which the cell is ended from outside: `timeout_s` if given. Otherwise late
    enough that the agent must have hung, because it limits each step itself.

    `slowness`: host seconds that one second of the agent's clock may take.
    """
    if options.timeout_s is not None:
        return options.timeout_s
    return slowness * (BETWEEN_STEPS_S + sum(step.timeout_s for step in cell.workload.steps))


def step_environment(step: Step, cell: Cell) -> dict[str, str]:
    """Environment variables of a step. They include the cell's seed, so that all profiles do the
    same work in a repetition."""
    return {"FSCOST_SEED": str(cell.seed)} | dict(step.env)


def settle(step: Step, options: LabOptions) -> str:
    """Settling method at the end of a step. For measured phases, the run's choice overrides the
    workload's."""
    return options.settle if options.settle is not None and step.measured else step.settle


def drop_caches(step: Step, options: LabOptions) -> bool:
    """True if the page cache is dropped before a step."""
    return step.drop_caches or (options.drop_caches and step.measured)


def _commit_s(mount_options: str) -> int | None:
    """Return the last `commit=` option of ext3, ext4 and btrfs; None if it is missing or 0, which
    means the default (ext4(5), btrfs(5))."""
    asked = [
        int(option[len("commit=") :])
        for option in mount_options.split(",")
        if re.fullmatch(r"commit=[0-9]{1,6}", option)
    ]
    return asked[-1] or None if asked else None


def _disk(disk: DiskSpec, place: Place) -> dict[str, Any]:
    described: dict[str, Any] = {"name": disk.name, "logical_block_bytes": disk.logical_block_bytes}
    if disk.name in place.devices:
        described |= {"device": place.devices[disk.name], "is_new": place.is_new}
        if place.identity is not None:
            described["identity"] = dict(place.identity)
    return described


def _step(step: Step, cell: Cell, options: LabOptions) -> dict[str, Any]:
    return {
        "name": step.name,
        "shell": step.shell,
        "measured": step.measured,
        "settle": settle(step, options),
        "drop_caches": drop_caches(step, options),
        "probe_interval_ms": (
            options.probe_interval_ms if step.measured or step is PROBE_ALONE else None
        ),
        "timeout_s": step.timeout_s if options.timeout_s is None else math.ceil(options.timeout_s),
        "env": step_environment(step, cell),
    }


def refuse_impossible(cell: Cell) -> None:
    """Refuse a cell that no agent could run. Two steps with the same name could not be told apart
    in the results."""
    names = interval_names(cell)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"workload {cell.workload.name}: more than one step is named {', '.join(twice)}",
            "give each step its own name",
        )
    if not cell.workload.steps:
        raise InputError(f"workload {cell.workload.name} has no steps")
