"""A guest that has booted, loaded its modules and said hello, kept to be gone on with by every cell.

Its memory is a file that each cell maps privately (copy on write), so that restoring copies nothing; the state of its devices is less than a megabyte.
The capability `x-ignore-shared` keeps the memory out of the stream (QEMU, docs/devel/migration.rst).
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import HostError
from fscost.lab.vm import cache, image, qemu
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import Accelerator, Machine, Qemu

BOOT_S = 120
"""Emulated on a busy machine; a quiet one needs 10."""
_RESTORE_S = 20
_SAVE_S = 60
_KEEP = 8
_IGNORE_SHARED = [{"capability": "x-ignore-shared", "state": True}]

During = Callable[[Qemu], AbstractContextManager[None]]
"""Entered with a machine while it boots, so that whoever is interrupted can end it."""


@dataclass(frozen=True)
class Snapshot:
    """Its files."""

    folder: Path
    accelerator: Accelerator

    @property
    def machine(self) -> Machine:
        """What it was taken of: restored into any other, it would crash."""
        return Machine(self.accelerator, self.folder / "vmlinux", self.folder / "initramfs")

    @property
    def kernel_version(self) -> str:
        """As the guest said it."""
        return (self.folder / "VERSION").read_text()

    @property
    def _memory(self) -> Path:
        return self.folder / "memory"

    @property
    def _state(self) -> Path:
        return self.folder / "state"

    def save(self, agent: Path, during: During) -> str:
        """Boot a machine, wait for its hello, keep it; returns its kernel's version."""
        arguments = self.machine.arguments(self._memory, is_private=False)
        with self._state.open("wb") as state, Qemu(arguments, agent) as machine, during(machine):
            hello = Port(machine).hello(BOOT_S)
            machine.monitor.execute("stop")
            machine.monitor.execute("migrate-set-capabilities", capabilities=_IGNORE_SHARED)
            machine.monitor.pass_file("state", state.fileno())
            machine.monitor.execute("migrate", uri="fd:state")
            machine.monitor.wait_migrated(_SAVE_S)
        return hello.kernel

    def restore(self, agent: Path, shares: tuple[qemu.Share, ...]) -> Qemu:
        """A machine where it was left, not running yet."""
        arguments = [*self.machine.arguments(self._memory, is_private=True), "-S", "-incoming", "defer"]
        with contextlib.suppress(OSError):
            os.utime(self.folder)  # those used last are kept
        try:
            state = self._state.open("rb")
        except OSError as error:
            raise HostError(f"{self._state}: {error.strerror}") from None
        with state:
            machine = Qemu(arguments, agent, shares)
            try:
                machine.monitor.execute("migrate-set-capabilities", capabilities=_IGNORE_SHARED)
                machine.monitor.pass_file("state", state.fileno())
                machine.monitor.execute("migrate-incoming", uri="fd:state")
                machine.monitor.wait_migrated(_RESTORE_S)
            except BaseException:
                machine.end()
                raise
        return machine

    def forget(self) -> None:
        """Take it out of the cache; machines restored from it go on."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def boot(self, agent: Path, shares: tuple[qemu.Share, ...]) -> Qemu:
        """The same machine from the beginning, up to its hello."""
        machine = Qemu(self.machine.arguments(None, is_private=True), agent, shares)
        try:
            Port(machine).hello(BOOT_S)
        except BaseException:
            machine.end()
            raise
        return machine


def take(kernel: GuestKernel, agent: Path, accelerator: Accelerator, say: Callable[[str], None], during: During) -> Snapshot:
    """The snapshot of this kernel, agent, QEMU and machine: from the cache, or made now."""
    initramfs = image.build(kernel, agent, image.wanted(kernel))
    folder = cache.root() / "snapshots" / _key(kernel, initramfs, accelerator)

    def make(made: Path) -> None:
        say(f"booting a guest of Linux {kernel.version} ({accelerator.name}), once; cells are restored from it")
        # A link where it can be one: the kernel stays what it was though the cache of kernels is cleared.
        try:
            os.link(kernel.vmlinux, made / "vmlinux")
        except OSError:
            shutil.copyfile(kernel.vmlinux, made / "vmlinux")
        (made / "initramfs").write_bytes(initramfs)
        (made / "VERSION").write_text(Snapshot(made, accelerator).save(agent, during))
        _forget_others(folder.parent)

    return Snapshot(cache.complete(folder, make), accelerator)


def _key(kernel: GuestKernel, initramfs: bytes, accelerator: Accelerator) -> str:
    """Of everything that goes into it; agent and modules are in the initramfs. Paths are not part of it, so those of the machine are left at a place that is
    the same for all."""
    nowhere = Path("/")
    parts = {
        "qemu": qemu.version(),
        "machine": Machine(accelerator, nowhere, nowhere).arguments(nowhere, is_private=False),
        "kernel": hashlib.sha256(kernel.vmlinux.read_bytes()).hexdigest(),
        "initramfs": hashlib.sha256(initramfs).hexdigest(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _forget_others(folder: Path) -> None:
    """Each is a quarter of a gigabyte, and every new agent makes one: those used last stay."""
    found = sorted((path for path in folder.iterdir() if not path.name.startswith(".")), key=lambda path: path.stat().st_mtime)
    for old in found[: -(_KEEP - 1)]:
        shutil.rmtree(old, ignore_errors=True)
