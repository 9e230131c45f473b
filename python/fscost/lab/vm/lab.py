"""VM lab: each cell runs in a throwaway virtual machine with a stock kernel, without any privilege.

The guest's userland is the host's root, read-only; its disks are recorded on the host. Only the
cell's folder outlives it.
"""

import contextlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from fscost import capture, files, host
from fscost.errors import HostError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell import plan
from fscost.lab.cell.binaries import Binaries, find_binaries
from fscost.lab.cell.commands import commands
from fscost.lab.cell.events import (
    MAX_EVENTS,
    Alive,
    Bye,
    Done,
    Event,
    Failed,
    Interval,
    Output,
    ProtocolError,
)
from fscost.lab.cell.measure import measure
from fscost.lab.cell.requirements import PlanFormat, unsupported_reason
from fscost.lab.vm import image, kernels, qemu
from fscost.lab.vm.confinement import Share
from fscost.lab.vm.disks import MAX_DISKS, ROOT, DiskServer, ServerError, give
from fscost.lab.vm.guests import BESIDE_BYTES, Guests
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import GUEST_PATH, Port
from fscost.lab.vm.qemu import Accelerator, KilledError, Qemu
from fscost.lab.vm.qmp import SlowError
from fscost.lab.vm.resident import held, read_by
from fscost.lab.vm.scheduling import Party
from fscost.lab.vm.seeded import with_seeded_uuid
from fscost.lab.vm.snapshot import Snapshot
from fscost.matrix import Cell
from fscost.profile import plan_format
from fscost.profile.model import FormatPlan, Profile

DISK_MODEL = "recorded: NBD-served, virtio-blk"
MAX_OUTPUT_BYTES = 256 << 20
_HOME = "/run/fscost"
_SLOWNESS = 20
"""Host seconds allowed for one second of an emulated guest, whose agent limits each step by its own
clock."""
_OFF_S = 20
_OVERHEAD_S = 3.0
_BYTES_PER_S = 100e6
_EMULATED_BYTES_PER_S = 5e6


class VmLab:
    """Lab that runs cells in virtual machines, under the kernel that their profile names.

    `images`: module folder of each kernel named by its image. `say` is called before long tasks.
    """

    name = "vm"

    def __init__(
        self,
        binaries: Binaries | None = None,
        images: Mapping[str, Path] | None = None,
        say: Callable[[str], None] = lambda _: None,
        plan_format: PlanFormat = plan_format,
    ) -> None:
        self._binaries = binaries or find_binaries()
        self._plan_format = plan_format
        self.guests = Guests(self._binaries, images or {}, say)

    @property
    def side_by_side(self) -> int:
        """Number of concurrent guests."""
        return self.guests.side_by_side

    @property
    def is_same_everywhere(self) -> bool:
        """True if guests are emulated: their clock counts instructions, not the host's time."""
        return self.guests.accelerated().is_emulated

    def interrupt(self) -> None:
        """End every guest. Their cells fail, and no other cell begins."""
        self.guests.running.interrupt()

    def guess_s(self, write_bytes: int) -> float:
        """Estimate the seconds that a cell takes if it writes this many bytes."""
        is_emulated = self.guests.accelerated().is_emulated
        return _OVERHEAD_S + write_bytes / (_EMULATED_BYTES_PER_S if is_emulated else _BYTES_PER_S)

    def check(self) -> None:
        """Raise HostError if no cell at all can run here."""
        because = self.unavailable_reason()
        if because is not None:
            raise HostError(
                f"the VM lab cannot run here: {because}",
                "run `fscost doctor` to check all requirements",
            )
        capture.require_native()

    def unavailable_reason(self) -> str | None:
        """Return why guests cannot run here, with a remedy, or None."""
        machine = os.uname().machine
        if machine != "x86_64":
            return f"guests are x86-64 and run this host's programs, which are for {machine}"
        if qemu.version() is None:
            return f"{qemu.PROGRAM} is missing; `{host.install_command([qemu.PROGRAM])}`"
        if host.memory_bytes("MemAvailable") < qemu.MEMORY_BYTES + BESIDE_BYTES:
            return (
                f"a guest takes {(qemu.MEMORY_BYTES + BESIDE_BYTES) >> 20} MiB of memory, and less"
                " is free; end other programs first"
            )
        return None

    def unsupported_reason(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """Return None if the cell can run here; otherwise the reason and a remedy."""
        if (count := len(cell.profile.disks)) > MAX_DISKS:
            return f"{cell.profile.name} has {count} disks; a guest has room for {MAX_DISKS}"
        if real := plan.real_disks(cell):
            return (
                f"disk {real[0].name} is the real device {real[0].device}, and a guest has recorded"
                " disks only; use `--lab native`"
            )
        timed = plan.timed_disks(cell)
        if timed and self.guests.accelerated().is_emulated:
            return (
                f"disk {timed[0].name} cannot be timed as {timed[0].model}: the clock of an"
                " emulated guest counts instructions and cannot wait for a disk; use `--lab"
                " native`, or a host where guests run under KVM"
            )
        kernel, array = self.guests.kernel(cell.profile.kernel), cell.profile.array
        if array is not None and not image.assembles(kernel, array.level):
            return (
                f"Linux {kernel.version} has no md level {array.level}; name another guest kernel"
                " with --kernel"
            )
        return unsupported_reason(
            cell,
            disk_size_bytes,
            self._plan_format,
            lambda type_: _unsupported_type_reason(kernel, type_),
            GUEST_PATH,
        )

    def unmountable_reason(self, type_: str, kernel: str) -> str | None:
        """Return why guests of this kernel (empty: the default one) cannot mount this type, or
        None."""
        return _unsupported_type_reason(self.guests.kernel(kernel), type_)

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Return every command that `run` would execute, for --dry-run; those after QEMU's run in
        the guest."""
        cell = plan.with_probe_alone(cell, options)
        formatted = self._formatted(cell, options)
        machine = qemu.Machine(qemu.EMULATION, "VMLINUX", "INITRAMFS")
        shares = qemu.share_arguments(ROOT.tag, ROOT.folder)
        servers = [
            f"{shlex.join(plan.disk_server(cell, options, self._binaries))} --nbd @fscost",
            shlex.join([qemu.PROGRAM, *machine.arguments(), *shares]),
        ]
        return list(commands(cell, options, formatted, _place(cell, qemu.EMULATION), servers))

    def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
        """Describe the host, and the guests of these profiles."""
        used = {
            profile.kernel or kernels.DEFAULT: self.guests.kernel(profile.kernel)
            for profile in profiles
        }
        guest = {
            "kernels": {name: kernel.version for name, kernel in used.items()},
            "builds": {name: kernel.build for name, kernel in used.items()},
            "accelerator": self.guests.accelerated().name,
            "qemu": qemu.version(),
            "memory_bytes": qemu.MEMORY_BYTES,
        }
        return host.environment() | {"disk_server": DISK_MODEL, "guest": guest}

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        """Run the cell. On Ctrl-C, end it and wait for it before KeyboardInterrupt propagates."""
        because = self.unsupported_reason(cell, options.disk_size_bytes)
        if because is not None:
            return CellResult(cell, "failed", because, kind="plan")
        probed = plan.with_probe_alone(cell, options)
        plan.refuse_impossible(probed)
        try:
            taken = self.guests.snapshot(cell.profile.kernel)
            attempt = self._attempt(probed, options, taken, on_step)
            if (
                attempt.is_suspect
                and taken.is_saved
                and not self.guests.running.is_interrupted
                and self.guests.renew(cell.profile.kernel, taken, attempt.result.because)
            ):
                attempt = self._attempt(
                    probed, options, self.guests.snapshot(cell.profile.kernel), on_step
                )
        except (KilledError, SlowError) as error:
            because = f"the guest of {cell.id} failed: {error.what}"
            return CellResult(cell, "failed", because, kind="guest")
        return replace(attempt.result, cell=cell)

    def _formatted(self, cell: Cell, options: LabOptions) -> FormatPlan:
        return with_seeded_uuid(
            self._plan_format(cell.profile, options.disk_size_bytes, cell.seed), cell.seed
        )

    def _attempt(
        self, cell: Cell, options: LabOptions, taken: Snapshot, on_step: Callable[[str], None]
    ) -> "_Attempt":
        accelerator = taken.accelerator
        attempt = _Attempt(
            {"accelerator": accelerator.name, "is_emulated": accelerator.is_emulated}
        )
        formatted = self._formatted(cell, options)
        built = plan.build(cell, options, formatted, _place(cell, accelerator))

        def agent(built: dict[str, Any], hear: Callable[[Event], None]) -> str:
            def heard(event: Event) -> None:
                attempt.has_begun = attempt.has_begun or isinstance(event, Interval | Failed)
                attempt.has_ended = attempt.has_ended or isinstance(event, Done | Failed)
                hear(event)

            try:
                return self._in_guest(cell, options, built, taken, heard, attempt)
            except ServerError as error:
                hear(Failed(step="", kind="disk-server", message=error.what, kernel=()))
                return error.what
            except (KilledError, SlowError) as error:
                attempt.is_unlucky = True
                raise ProtocolError(error.what) from None
            except HostError as error:
                raise ProtocolError(error.what) from None

        result = measure(
            cell,
            options,
            built,
            agent,
            on_step,
            disk_model=DISK_MODEL,
            is_emulated=accelerator.is_emulated,
            in_guest=True,
        )
        # In a guest, the process in place of the disk server only forwards messages.
        result.samples = [each for each in result.samples if each.metric != "cpu_disk_server_s"]
        result.facts["guest"] = attempt.how | {"kernel": taken.kernel_version}
        attempt.result = result
        return attempt

    def _in_guest(
        self,
        cell: Cell,
        options: LabOptions,
        built: dict[str, Any],
        taken: Snapshot,
        hear: Callable[[Event], None],
        attempt: "_Attempt",
    ) -> str:
        paths = plan.Paths(options.cell_dir)
        input_ = cell.workload.input
        confined = self.guests.confined()
        untimed = ["--untimed"] if taken.accelerator.is_emulated else []
        shares = (ROOT,) if input_ is None else (ROOT, Share("input", input_.absolute()))
        with (
            DiskServer(
                [*plan.disk_server(cell, options, self._binaries), *untimed, *confined.as_user],
                paths.agent_errors,
            ) as server,
            self.guests.start(cell.profile.kernel, taken, shares, attempt.how) as machine,
            self.guests.processors.one() as processor,
            files.growing(paths.output, again=True) as output,
            held(read_by(cell, built)),
            contextlib.ExitStack() as bounded,
        ):
            server.wait_ready()
            port = Port(machine)
            try:
                relay = server.relay(machine)
                if taken.accelerator.is_emulated:
                    party = Party(machine.guest_thread(), (machine.pid, server.pid), relay)
                    attempt.how["takes_turns"] = party.pin(processor)
                    leave = party.bounded(lambda: attempt.how.update(takes_turns=False))
                    bounded.enter_context(leave)
                order = {
                    "root": ROOT.tag,
                    "input": None if input_ is None else "input",
                    "disks": [disk.name for disk in cell.profile.disks],
                    "plan": built,
                }
                port.order(order, lambda: _give(machine, server, cell, shares))
            except (HostError, OSError) as error:
                server.check()
                blamed = machine.blamed(HostError(getattr(error, "what", str(error))))
                raise type(blamed)(f"{blamed.what}; {machine.last_words()}") from None
            slowness = _SLOWNESS if taken.accelerator.is_emulated else 1
            limit_s = plan.deadline_s(cell, options, slowness)
            try:
                _listen(port, limit_s, hear, output)
            except ProtocolError as error:
                server.check_killed()
                attempt.is_unlucky = machine.was_killed()
                raise error from None
            if not attempt.has_ended:
                server.check_killed()
            status = machine.wait(_OFF_S)
            attempt.is_unlucky = machine.was_killed()
            words = machine.last_words()
            state = "is still running" if status is None else f"ended with status {status}"
            return f"QEMU {state}" + (f"; last kernel messages: {words}" if words else "")


@dataclass
class _Attempt:
    """One attempt to run a cell in a guest."""

    how: dict[str, Any]
    """Facts for `facts.guest`."""
    has_begun: bool = False
    """True once the guest has reported an interval or a failure."""
    has_ended: bool = False
    """True once the guest has reported how its cell ended."""
    is_unlucky: bool = False
    """True if QEMU was killed from outside, or the host was too busy."""
    result: CellResult = field(init=False)

    @property
    def is_suspect(self) -> bool:
        """True if the snapshot may have caused the failure."""
        return self.result.kind == "guest" and not self.has_begun and not self.is_unlucky


def _give(machine: Qemu, server: DiskServer, cell: Cell, shares: Sequence[Share]) -> None:
    """Plug disks and folders into a machine, then let it continue."""
    server.plug(machine, cell.profile.disks)
    give(machine, shares)


def _listen(port: Port, limit_s: float, hear: Callable[[Event], None], output: BinaryIO) -> None:
    """Listen until the guest's last event; commands' output goes to `output`, the rest to
    `hear`."""
    heard = 0
    for event in port.events(limit_s):
        match event:
            case Alive():
                pass
            case Bye():
                return
            case Output(text):
                output.write(text.encode(errors="replace"))
                output.flush()
                if output.tell() > MAX_OUTPUT_BYTES:
                    raise ProtocolError(
                        f"its commands printed more than {MAX_OUTPUT_BYTES >> 20} MiB"
                    )
            case _:
                heard += 1
                if heard > MAX_EVENTS:
                    raise ProtocolError(f"more than {MAX_EVENTS} events")
                hear(event)


def _place(cell: Cell, accelerator: Accelerator) -> plan.Place:
    return plan.Place(
        parent_pid=1,
        log=f"{_HOME}/output.log",
        base=f"{_HOME}/base",
        input=None if cell.workload.input is None else f"{_HOME}/input",
        disk_server=(f"{_HOME}/agent", "forward", "fscost.control"),
        devices={disk.name: f"/dev/fscost/{disk.name}" for disk in cell.profile.disks},
        is_new=True,
        owns_kernel=True,
        is_emulated=accelerator.is_emulated,
    )


def _unsupported_type_reason(kernel: GuestKernel, type_: str) -> str | None:
    if image.mounts(kernel, type_):
        return None
    return f"Linux {kernel.version} has no {type_}; name another guest kernel with --kernel"
