"""Native lab: cells run on the running kernel, each under one agent in its own mount namespace."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from fscost import capture, host
from fscost.errors import InputError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell import plan
from fscost.lab.cell.binaries import Binaries, find_binaries
from fscost.lab.cell.commands import commands
from fscost.lab.cell.events import Event
from fscost.lab.cell.measure import measure
from fscost.lab.cell.requirements import PlanFormat, unsupported_reason
from fscost.lab.native.agent import run_agent
from fscost.lab.native.real_device import RealDevice
from fscost.matrix import Cell
from fscost.profile import plan_format
from fscost.profile import unsupported_reason as unsupported_profile_reason
from fscost.profile.model import FormatPlan, Profile

_OVERHEAD_S = 0.5
_BYTES_PER_S = 150e6
DISK_MODEL = "recorded: FUSE-served file + loop device"
UBLK_MODEL = "recorded: ublk device"
OUTSIDE_SYNC_CALLS = ("sync",)
"""System calls that write back every file system of the machine, so also that of a cell. syncfs(2)
is not among them: it writes back one file system, and programs outside a cell have no file open on
the cell's, which is mounted in a namespace of its own."""


class NativeLab:
    """Lab on this machine, with root, FUSE and loop devices. File systems are limited to those of
    the running kernel.

    `device` is a real block device that the user released for erasure (`real_device.claim`); cells
    then run on it, and nothing is recorded. `real_disks` are real devices by the path that a
    profile's disk gives them; they carry out the recorded requests.
    """

    name = "native"

    def __init__(
        self,
        binaries: Binaries | None = None,
        device: RealDevice | None = None,
        plan_format: PlanFormat = plan_format,
        real_disks: Mapping[str, RealDevice] = MappingProxyType({}),
    ) -> None:
        self._binaries = binaries or find_binaries()
        self._device = device
        self._plan_format = plan_format
        self._real_disks = real_disks

    side_by_side = 1
    """Concurrent cells would distort each other's measurements."""
    is_same_everywhere = False
    """Bytes depend on the speed of the machine: a slower one writes back more often."""

    def interrupt(self) -> None:
        """Do nothing: no cell runs in another thread."""

    def guess_s(self, write_bytes: int) -> float:
        """Estimate the seconds that a cell takes if it writes this many bytes."""
        return _OVERHEAD_S + write_bytes / _BYTES_PER_S

    def check(self) -> None:
        """Raise HostError if no cell at all can run here."""
        host.require(self._front_ends())
        capture.require_native()

    def unsupported_reason(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """Return None if the cell can run here; otherwise what is missing and what would enable
        it."""
        profile = cell.profile
        if self._device is not None and (timed := plan.timed_disks(cell)):
            return (
                f"{profile.name} names a model for disk {timed[0].name}, and --device names a real"
                " device; drop one of the two"
            )
        if self._device is not None and len(profile.disks) != 1:
            return (
                f"{profile.name} needs {len(profile.disks)} disks and --device names one; run it on"
                " recorded disks, without --device"
            )
        if profile.array is not None:
            return _with_remedy(self.unsupported_type_reason(profile))
        return unsupported_reason(
            cell,
            disk_size_bytes,
            self._plan_format,
            lambda type_: _with_remedy(_unsupported_type_reason(type_)),
        )

    def unsupported_type_reason(self, profile: Profile) -> str | None:
        """Return why this kernel does not mount the type of file system, or must not assemble its
        array, or None."""
        if profile.array is not None:
            return f"the array of {profile.name} would outlive a cell that is killed"
        return unsupported_profile_reason(profile) or _unsupported_type_reason(
            self._plan_format(profile, 1 << 40, 0).mount_type
        )

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Return every command that `run` would execute, as shell text for --dry-run."""
        cell = plan.with_probe_alone(cell, options)
        place = self.place(cell, options)
        servers = [] if place.disk_server is None else [shlex.join(place.disk_server)]
        over_ublk = self._front_end == "ublk" and not plan.real_disks(cell)
        formatted = self._formatted(cell, options)
        return list(commands(cell, options, formatted, place, servers, over_ublk))

    def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
        """Describe kernel, CPU and mkfs versions for the manifest."""
        found = host.environment()
        return found | {"disk_server": UBLK_MODEL} if self._front_end == "ublk" else found

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        """Run the cell. On Ctrl-C, the cell is ended and waited for before KeyboardInterrupt
        propagates."""
        self._refuse_unclaimed(options)
        self._refuse_unclaimed_disks(cell)
        because = self.unsupported_reason(cell, self._disk_size_bytes(options))
        if because is not None:
            # The run checked before, but without the disk's size. A cell that gets this far and
            # cannot run is a failure of its plan.
            return CellResult(cell, "failed", because, kind="plan")
        probed = plan.with_probe_alone(cell, options)
        plan.refuse_impossible(probed)
        built = plan.build(
            probed, options, self._formatted(probed, options), self.place(probed, options)
        )
        disk_model = (
            DISK_MODEL if self._device is None else f"{self._device.model} ({self._device.path})"
        )

        def agent(built: dict[str, Any], hear: Callable[[Event], None]) -> str:
            errors = plan.Paths(options.cell_dir).agent_errors
            deadline_s = plan.deadline_s(probed, options)
            status = run_agent(self._binaries.agent, built, errors, deadline_s, hear)
            return f"signal {-status}" if status < 0 else f"exit status {status}"

        result = replace(
            measure(probed, options, built, agent, on_step, disk_model=disk_model), cell=cell
        )
        attached = result.facts.get("disks", {}).values()
        if any(each["device"].startswith("/dev/ublkb") for each in attached):
            result.facts["disk_model"] = UBLK_MODEL
        if real := plan.real_disks(cell):
            result.facts["real_disks"] = {
                disk.name: self._real_disks[disk.device].description for disk in real
            }
        return result

    def place(self, cell: Cell, options: LabOptions) -> plan.Place:
        """Describe the agent's environment for the plan."""
        device, input_ = self._device, cell.workload.input
        identities = {path: each.identity for path, each in self._real_disks.items()}
        return plan.Place(
            parent_pid=os.getpid(),
            log=str(plan.Paths(options.cell_dir).output.absolute()),
            outside_sync_calls=OUTSIDE_SYNC_CALLS,
            base=str(host.base_directory()),
            input=None if input_ is None else str(input_.absolute()),
            disk_server=(
                plan.disk_server(cell, options, self._binaries, identities)
                if device is None
                else None
            ),
            identity=None if device is None else device.identity,
            devices={}
            if device is None
            else {disk.name: str(device.path) for disk in cell.profile.disks},
        )

    @cached_property
    def _front_end(self) -> host.FrontEnd:
        """Front end of recorded disks, as the disk server chooses it."""
        name, _ = host.front_end(self._binaries.disk)
        return name

    def _front_ends(self) -> Set[host.FrontEnd]:
        """Front ends that cells of this lab may need."""
        if self._device is not None:
            return set()
        # A real disk is always served over FUSE.
        return {self._front_end, "fuse"} if self._real_disks else {self._front_end}

    def _formatted(self, cell: Cell, options: LabOptions) -> FormatPlan:
        return self._plan_format(cell.profile, self._disk_size_bytes(options), cell.seed)

    def _disk_size_bytes(self, options: LabOptions) -> int:
        return options.disk_size_bytes if self._device is None else self._device.size_bytes

    def _refuse_unclaimed(self, options: LabOptions) -> None:
        """Refuse a device in the options that the user has not confirmed, so that it reaches no
        agent."""
        if self._device is None:
            if options.device is not None:
                raise InputError(
                    f"{options.device} was not confirmed",
                    f"to erase it, add --device {options.device} --erase-device {options.device}",
                )
            return
        if options.device is None or options.device.resolve() != self._device.path:
            raise InputError(
                f"{options.device} is not {self._device.path}, the device that was confirmed"
            )
        self._device.refuse_if_busy()

    def _refuse_unclaimed_disks(self, cell: Cell) -> None:
        for disk in plan.real_disks(cell):
            if disk.device not in self._real_disks:
                raise InputError(
                    f"{disk.device} was not confirmed",
                    f"to erase it, add --erase-device {disk.device}",
                )
            self._real_disks[disk.device].refuse_if_busy()


def _unsupported_type_reason(name: str) -> str | None:
    if host.kernel_has(name):
        return None
    return f"this kernel has no {name} (neither in /proc/filesystems nor as a module)"


def _with_remedy(because: str | None) -> str | None:
    return because and f"{because}; `--lab vm` runs it in a virtual machine"
