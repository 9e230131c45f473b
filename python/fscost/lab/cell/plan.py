"""One cell as the agent's plan (docs/cell-protocol.md)."""

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
"""Before the phases of a probed cell: the probe on an idle file system, so that what it writes
itself is known."""


@dataclass(frozen=True)
class Paths:
    """The files of one cell."""

    cell_dir: Path

    @property
    def recording(self) -> Path:
        """Every request, with its content."""
        return self.cell_dir / RECORDING

    @property
    def requests(self) -> Path:
        """Every request, without its content."""
        return self.cell_dir / "requests.parquet"

    @property
    def completions(self) -> Path:
        """When the models of its disks completed each request, and when its reply was sent."""
        return self.cell_dir / "completions"

    def model(self, disk: str) -> Path:
        """The device model of a disk."""
        return self.cell_dir / f"{disk}.toml"

    @property
    def output(self) -> Path:
        """What the commands printed."""
        return self.cell_dir / "output.log"

    @property
    def agent_errors(self) -> Path:
        """What the agent and the disk server complained about."""
        return self.cell_dir / "agent.log"


@dataclass(frozen=True)
class Place:
    """Where the agent runs, as its plan must know it: on this machine, or in a guest."""

    parent_pid: int
    log: str
    base: str
    input: str | None
    disk_server: Sequence[str] | None
    devices: Mapping[str, str]
    """Disks that are block devices already, by name; the others are loop devices on what the disk
    server serves."""
    identity: Mapping[str, int] | None = None
    """Of such a device: what the agent compares with the descriptor that it opens itself."""
    is_new: bool = False
    """Whether these devices came into being for this cell."""
    is_emulated: bool = False
    """Whether its clock counts instructions."""
    owns_kernel: bool = False
    """Whether the kernel runs for this cell alone."""


def disk_sizes_bytes(cell: Cell, disk_size_bytes: int) -> dict[str, int]:
    """Each disk of the profile with its size."""
    return {disk.name: disk.size_bytes or disk_size_bytes for disk in cell.profile.disks}


def disk_server(
    cell: Cell,
    options: LabOptions,
    binaries: Binaries,
    identities: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> list[str]:
    """The command of the disk server. `identities`: of real devices, by path."""
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
    """The disks that have a device model, or a real device behind them."""
    return [disk for disk in cell.profile.disks if disk.model]


def modelled_disks(cell: Cell) -> list[DiskSpec]:
    """The disks that have a device model."""
    return [disk for disk in timed_disks(cell) if not disk.device]


def real_disks(cell: Cell) -> list[DiskSpec]:
    """The disks whose requests a real device carries out."""
    return [disk for disk in timed_disks(cell) if disk.device]


def _timing(cell: Cell, paths: Paths, identities: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What the disk server is told of models and devices; nothing where no disk has one."""
    words = []
    for disk in modelled_disks(cell):
        words += ["--model", f"{disk.name}={paths.model(disk.name)}"]
    for disk in real_disks(cell):
        identity = identities[disk.device]
        numbers = ",".join(str(identity[key]) for key in ("major", "minor", "diskseq"))
        words += ["--device", f"{disk.name}={disk.device},{numbers}"]
    if words:
        words += ["--seed", str(cell.seed), "--completions", str(paths.completions)]
    return words


def build(cell: Cell, options: LabOptions, formatted: FormatPlan, place: Place) -> dict[str, Any]:
    """The plan of one cell; every command complete but for the placeholders that the agent fills
    in."""
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
            "data_only": False,
        },
        "after_mount": [list(command) for command in formatted.after_mount],
        "background": [list(command) for command in formatted.background],
        "after_unmount": [list(command) for command in formatted.after_unmount],
        "sync_tracepoints": list(formatted.sync_tracepoints),
        "commit_s": _commit_s(formatted.mount_options),
        "is_emulated": place.is_emulated,
        "owns_kernel": place.owns_kernel,
        "inspect": [
            {"name": name, "command": list(command)} for name, command in formatted.inspect
        ],
        "steps": [_step(step, cell, options) for step in cell.workload.steps],
    }


def with_probe_alone(cell: Cell, options: LabOptions) -> Cell:
    """The cell, with `PROBE_ALONE` before its first phase if a probe is asked for."""
    if options.probe_interval_ms is None:
        return cell
    steps = cell.workload.steps
    first = next((number for number, step in enumerate(steps) if step.measured), len(steps))
    return replace(
        cell, workload=replace(cell.workload, steps=(*steps[:first], PROBE_ALONE, *steps[first:]))
    )


def interval_names(cell: Cell) -> list[str]:
    """The intervals that a complete cell reports, in order."""
    return ["mkfs", "mount", *(step.name for step in cell.workload.steps)]


def deadline_s(cell: Cell, options: LabOptions, slowness: float = 1) -> float:
    """When the cell is ended from outside: after `timeout_s`, else when the agent, which limits
    each step itself, has surely hung.

    `slowness`: the host's seconds that a second of the agent's clock may take.
    """
    if options.timeout_s is not None:
        return options.timeout_s
    return slowness * (BETWEEN_STEPS_S + sum(step.timeout_s for step in cell.workload.steps))


def step_environment(step: Step, cell: Cell) -> dict[str, str]:
    """A step's variables; the cell's seed is among them, so that a repetition is the same work for
    each profile."""
    return {"FSCOST_SEED": str(cell.seed)} | dict(step.env)


def settle(step: Step, options: LabOptions) -> str:
    """What ends a step: the run's choice over the workload's, for phases."""
    return options.settle if options.settle is not None and step.measured else step.settle


def drop_caches(step: Step, options: LabOptions) -> bool:
    """Whether the page cache is dropped before a step."""
    return step.drop_caches or (options.drop_caches and step.measured)


def _commit_s(mount_options: str) -> int | None:
    """The last `commit=` of ext3, ext4 and btrfs; 0 is their default (ext4(5), btrfs(5))."""
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
        "probe_interval_ms": options.probe_interval_ms
        if step.measured or step is PROBE_ALONE
        else None,
        "timeout_s": step.timeout_s if options.timeout_s is None else math.ceil(options.timeout_s),
        "env": step_environment(step, cell),
    }


def refuse_impossible(cell: Cell) -> None:
    """What no agent could run: two steps of one name could not be told apart in the results."""
    names = interval_names(cell)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"workload {cell.workload.name}: more than one step is named {', '.join(twice)}",
            "give each step its own name",
        )
    if not cell.workload.steps:
        raise InputError(f"workload {cell.workload.name} has no steps")
