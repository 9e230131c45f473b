"""A guest that has booted, loaded its modules and said hello, kept for every cell to continue from.

The stream of a migration (QEMU, docs/devel/migration.rst) holds its memory and the state of its
devices. QEMU inherits the stream and
the two files that it boots as descriptors: it can open none of them, and cells share nothing that
one of them could change.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from fscost.errors import HostError
from fscost.lab.vm import cache, image, qemu
from fscost.lab.vm.cache import DamagedError
from fscost.lab.vm.confinement import Confinement, Share
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import Accelerator, Machine, Qemu

BOOT_S = 600
"""Emulated on a machine with a load of 20 for each processor; a quiet one needs 10."""
_RESTORE_S = 120
_SAVE_S = 120
_KEEP = 8
_KERNEL, _INITRAMFS, _STATE, _VERSION = "vmlinux", "initramfs", "state", "VERSION"
_FOR_ALL = 0o644
"""QEMU, which may be another user, opens what it inherits once more; the folder around keeps others
out."""

During = Callable[[Qemu], AbstractContextManager[None]]
"""Entered with a machine while it boots, so that whoever is interrupted can end it."""


class Snapshot:
    """Its files are open and checked, so that deleting it takes nothing from those who use it."""

    def __init__(self, folder: Path, accelerator: Accelerator) -> None:
        """DamagedError when a file differs from its digest."""
        self.folder = folder
        self.accelerator = accelerator
        with contextlib.suppress(OSError):
            os.utime(folder)  # those used last are kept
        digests = cache.digests(folder)
        self._files = {
            name: cache.CheckedFile(folder / name, digests.get(name))
            for name in (_KERNEL, _INITRAMFS, _STATE, _VERSION)
        }
        self.kernel_version = self._files[_VERSION].read().decode()
        """As the guest said it."""

    def restore(self, confinement: Confinement, shares: tuple[Share, ...]) -> Qemu:
        """A machine where it was left, not running yet."""
        with (
            self._files[_STATE].reopened() as state,
            self._start(confinement, shares, "-S", "-incoming", "defer") as machine,
        ):
            machine.monitor.pass_file("state", state)
            machine.monitor.execute("migrate-incoming", uri="fd:state")
            machine.monitor.wait_migrated(_RESTORE_S)
        return machine

    def boot(self, confinement: Confinement, shares: tuple[Share, ...]) -> Qemu:
        """The same machine from the beginning, up to its hello."""
        with self._start(confinement, shares) as machine:
            Port(machine).hello(BOOT_S)
        return machine

    @contextlib.contextmanager
    def _start(
        self, confinement: Confinement, shares: tuple[Share, ...], *more: str
    ) -> Iterator[Qemu]:
        """A machine that lives on after the block, unless that fails."""
        with (
            self._files[_KERNEL].reopened() as kernel,
            self._files[_INITRAMFS].reopened() as initramfs,
        ):
            described = Machine(self.accelerator, qemu.inherited(kernel), qemu.inherited(initramfs))
            machine = Qemu(described, confinement, shares, (kernel, initramfs), *more)
        try:
            yield machine
        except HostError as error:
            blamed = machine.blamed(error)
            machine.end()
            raise blamed from None
        except BaseException:
            machine.end()
            raise


def take(
    kernel: GuestKernel,
    confinement: Confinement,
    accelerator: Accelerator,
    say: Callable[[str], None],
    during: During,
) -> Snapshot:
    """The snapshot of this kernel, agent, QEMU and machine: from the cache, or made now. A damaged
    one is made again, once."""
    initramfs = image.build(kernel, confinement.agent, image.wanted(kernel))
    folder = cache.root() / "snapshots" / _key(kernel, initramfs, accelerator)

    def make(made: Path) -> None:
        say(
            f"booting a guest of Linux {kernel.version} ({accelerator.name}), once; cells are restored from it"
        )
        shutil.copyfile(kernel.vmlinux, made / _KERNEL)
        (made / _INITRAMFS).write_bytes(initramfs)
        for name in (_KERNEL, _INITRAMFS):
            (made / name).chmod(_FOR_ALL)
        (made / _VERSION).write_text(save(made, confinement, accelerator, during))
        cache.discard_all_but(folder.parent, _KEEP - 1)

    try:
        return Snapshot(cache.complete(folder, make), accelerator)
    except DamagedError as error:
        say(f"the snapshot {folder} is damaged ({error.what}); it is made again")
        cache.discard(folder)
    return Snapshot(cache.complete(folder, make), accelerator)


def save(folder: Path, confinement: Confinement, accelerator: Accelerator, during: During) -> str:
    """Boot a machine, wait for its hello, keep its state; returns its kernel's version."""
    with (
        (folder / _STATE).open("wb") as state,
        qemu.machine_of(accelerator, folder / _KERNEL, folder / _INITRAMFS) as (
            described,
            descriptors,
        ),
        Qemu(described, confinement, (), descriptors) as machine,
        during(machine),
    ):
        try:
            hello = Port(machine).hello(BOOT_S)
            machine.monitor.execute("stop")
            machine.monitor.pass_file("state", state.fileno())
            # The stream goes to a file: no reason to be slow (32 MiB/s is the default of old
            # versions).
            machine.monitor.execute("migrate-set-parameters", **{"max-bandwidth": 1 << 33})
            machine.monitor.execute("migrate", uri="fd:state")
            machine.monitor.wait_migrated(_SAVE_S)
        except HostError as error:
            raise machine.blamed(error) from None
    return hello.kernel


def _key(kernel: GuestKernel, initramfs: bytes, accelerator: Accelerator) -> str:
    """Of everything that goes into it; agent and modules are in the initramfs."""
    parts = {
        "qemu": qemu.version(),
        "machine": Machine(accelerator, _KERNEL, _INITRAMFS).arguments(),
        "kernel": hashlib.sha256(kernel.vmlinux.read_bytes()).hexdigest(),
        "initramfs": hashlib.sha256(initramfs).hexdigest(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
