"""Snapshot of a guest that has booted, loaded its modules and said hello. Every cell continues from
it.

A migration stream (QEMU, docs/devel/migration.rst) holds the guest's memory and the state of its
devices. QEMU inherits the stream, and the two files that it boots, as descriptors. It can open none
of them by path, and cells share nothing that one of them could change.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from fscost.errors import HostError
from fscost.files import cache
from fscost.lab.vm import image, qemu
from fscost.lab.vm.confinement import Confinement, Share
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import Accelerator, Machine, Qemu, Running
from fscost.lab.vm.qmp import RefusedError

BOOT_S = 600
"""Time limit for booting. An emulated guest needs 10 s on a quiet machine; the limit allows for a
load of 20 per processor."""
_RESTORE_S = 120
_SAVE_S = 120
_KEEP = 8
_KERNEL, _INITRAMFS, _STATE, _VERSION = "vmlinux", "initramfs", "state", "VERSION"
_FOR_ALL = 0o644
"""Mode that lets QEMU, which may run as another user, open inherited files again. The enclosing
folder keeps other users out."""


class Snapshot:
    """A snapshot whose files are open and verified, so that deleting it does not affect its
    users."""

    def __init__(self, folder: Path, accelerator: Accelerator) -> None:
        """Open the snapshot; DamagedError if a file differs from its digest."""
        self.folder = folder
        self.accelerator = accelerator
        with contextlib.suppress(OSError):
            os.utime(folder)  # the most recently used are kept
        digests = cache.digests(folder)
        self._files = {
            name: cache.CheckedFile(folder / name, digests.get(name))
            for name in (_KERNEL, _INITRAMFS, _STATE, _VERSION)
        }
        self.kernel_version = self._files[_VERSION].read().decode()
        """Kernel version, as the guest reported it."""
        with self._files[_STATE].reopened() as state:
            self.is_saved = os.fstat(state).st_size > 0
            """False if this QEMU refuses to save a guest, so that each one must boot."""

    def discard(self) -> None:
        """Delete the snapshot from the cache, unless another process has made it again."""
        cache.discard(self._files[_STATE])

    def restore(
        self, confinement: Confinement, shares: tuple[Share, ...], running: Running
    ) -> Qemu:
        """Restore the machine to its saved state, not running yet."""
        with (
            self._files[_STATE].reopened() as state,
            self._start(confinement, shares, running, "-S", "-incoming", "defer") as machine,
        ):
            stream = machine.monitor.add_stream(state)
            machine.monitor.execute("migrate-incoming", uri=stream)
            machine.monitor.wait_migrated(_RESTORE_S)
        return machine

    def boot(self, confinement: Confinement, shares: tuple[Share, ...], running: Running) -> Qemu:
        """Boot the same machine from the beginning, up to its hello."""
        with self._start(confinement, shares, running) as machine:
            Port(machine).hello(BOOT_S)
        return machine

    @contextlib.contextmanager
    def _start(
        self,
        confinement: Confinement,
        shares: tuple[Share, ...],
        running: Running,
        *more: str,
    ) -> Iterator[Qemu]:
        """Start a machine that outlives the block, unless the block fails."""
        with (
            self._files[_KERNEL].reopened() as kernel,
            self._files[_INITRAMFS].reopened() as initramfs,
        ):
            described = Machine(self.accelerator, qemu.inherited(kernel), qemu.inherited(initramfs))
            files = (kernel, initramfs)
            machine = Qemu(described, confinement, shares, files, *more, running=running)
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
    running: Running,
) -> Snapshot:
    """Return the snapshot of this kernel, agent, QEMU and machine, from the cache or made now. A
    damaged one is made again, once."""
    initramfs = image.build(kernel, confinement.agent, image.wanted(kernel))
    folder = cache.root() / "snapshots" / _key(kernel, initramfs, accelerator)

    def make(made: Path) -> None:
        say(
            f"booting a guest of Linux {kernel.version} ({accelerator.name}), once; cells are"
            " restored from it"
        )
        shutil.copyfile(kernel.vmlinux, made / _KERNEL)
        (made / _INITRAMFS).write_bytes(initramfs)
        for name in (_KERNEL, _INITRAMFS):
            (made / name).chmod(_FOR_ALL)
        (made / _VERSION).write_text(save(made, confinement, accelerator, running, say))
        cache.discard_all_but(folder.parent, _KEEP - 1)

    return cache.opened(
        folder,
        make,
        lambda complete: Snapshot(complete, accelerator),
        lambda damage: say(f"the snapshot {folder} is damaged ({damage.what}); rebuilding it"),
    )


def save(
    folder: Path,
    confinement: Confinement,
    accelerator: Accelerator,
    running: Running,
    say: Callable[[str], None],
) -> str:
    """Boot a machine, wait for its hello, and save its state, unless QEMU refuses that; return its
    kernel's version."""
    with (
        (folder / _STATE).open("wb") as state,
        qemu.machine_of(accelerator, folder / _KERNEL, folder / _INITRAMFS) as (
            described,
            descriptors,
        ),
        Qemu(described, confinement, (), descriptors, running=running) as machine,
    ):
        try:
            hello = Port(machine).hello(BOOT_S)
            machine.monitor.execute("stop")
            # The stream goes to a file, so its rate need not be limited (old versions default to 32
            # MiB/s).
            machine.monitor.execute("migrate-set-parameters", **{"max-bandwidth": 1 << 33})
            stream = machine.monitor.add_stream(state.fileno())
            machine.monitor.execute("migrate", uri=stream)
            machine.monitor.wait_migrated(_SAVE_S)
        except RefusedError as error:
            state.truncate(0)
            say(f"{error.what}; so every cell boots its guest")
        except HostError as error:
            raise machine.blamed(error) from None
    return hello.kernel


def _key(kernel: GuestKernel, initramfs: bytes, accelerator: Accelerator) -> str:
    """Key of a snapshot: a digest of everything that it depends on. Agent and modules are in the
    initramfs."""
    parts = {
        "qemu": qemu.version(),
        "machine": Machine(accelerator, _KERNEL, _INITRAMFS).arguments(),
        "kernel": hashlib.sha256(kernel.vmlinux.read_bytes()).hexdigest(),
        "initramfs": hashlib.sha256(initramfs).hexdigest(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
