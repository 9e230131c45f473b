"""The life of guests: their kernels, and snapshots that each guest continues from. What a guest
does, its caller decides (`lab.py`: a cell; `examine.py`: states)."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fscost import host
from fscost.errors import HostError
from fscost.lab.cell.binaries import Binaries
from fscost.lab.vm import accelerator, confinement, kernels, qemu, snapshot
from fscost.lab.vm.confinement import Confinement, Share
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.qemu import Accelerator, KilledError, Qemu, Running
from fscost.lab.vm.qmp import SlowError
from fscost.lab.vm.scheduling import Processors
from fscost.lab.vm.snapshot import Snapshot

BESIDE_BYTES = 512 << 20
"""Memory needed beyond the guest's own, for QEMU and the disk server."""
_MOST_LANES = 4


class Guests:
    """Starts guests. `images`: module folder of each kernel named by its image. `say` is called
    before long tasks."""

    def __init__(
        self, binaries: Binaries, images: Mapping[str, Path], say: Callable[[str], None]
    ) -> None:
        self._binaries = binaries
        self._images = images
        self._say = say
        self._kernels: dict[str, GuestKernel] = {}
        self._confinement: Confinement | None = None
        self._accelerator: Accelerator | None = None
        self._snapshots: dict[GuestKernel, Snapshot] = {}
        self._renewed: set[Path] = set()
        self._making = threading.Lock()
        self.processors = Processors()
        self.running = Running()

    @property
    def side_by_side(self) -> int:
        """Number of concurrent guests. Neighbours slow emulated guests without changing results;
        under KVM guests share the host's time, so only one runs."""
        if not self.accelerated().is_emulated:
            return 1
        room = host.memory_bytes("MemAvailable") // (qemu.MEMORY_BYTES + BESIDE_BYTES)
        return max(1, min(len(self.processors), room, _MOST_LANES))

    @property
    def disk_server(self) -> str:
        """The program that records disks."""
        return str(self._binaries.disk)

    def kernel(self, name: str | None) -> GuestKernel:
        """Return the kernel of this name, fetched if needed; None is the default one."""
        name = name or kernels.DEFAULT
        if name not in self._kernels:
            modules = self._images.get(name)
            self._kernels[name] = (
                kernels.fetch(name, self._say)
                if modules is None
                else kernels.of_files(Path(name), modules)
            )
        return self._kernels[name]

    def accelerated(self) -> Accelerator:
        """Return the accelerator, probed once with whichever kernel is available first, because the
        answer depends only on this host."""
        if self._accelerator is None:
            kernel = next(iter(self._kernels.values()), None) or kernels.fetch(
                kernels.DEFAULT, self._say
            )
            self._accelerator = accelerator.choose(kernel, self.confined())
        return self._accelerator

    def confined(self) -> Confinement:
        """Return the confinement of all guests."""
        if self._confinement is None:
            self._confinement = confinement.choose(self._binaries.agent, qemu.PROGRAM)
        return self._confinement

    def snapshot(self, kernel: str | None) -> Snapshot:
        """Return the kernel's snapshot, made once by whoever needs it first."""
        with self._making:
            wanted = self.kernel(kernel)
            found = self._snapshots.get(wanted)
            if found is None:
                found = snapshot.take(
                    wanted, self.confined(), self.accelerated(), self._say, self.running
                )
                self._snapshots[wanted] = found
        return found

    def renew(self, kernel: str | None, taken: Snapshot, because: str) -> bool:
        """Discard the snapshot so that it is made again, but only once: if a new one fails too, it
        is not at fault. Return False if that was done before."""
        with self._making:
            if taken.folder in self._renewed:
                return False
            self._renewed.add(taken.folder)
            self._say(
                f"a guest could not continue from the snapshot {taken.folder}: {because};"
                " rebuilding it"
            )
            taken.discard()
            self._snapshots.pop(self.kernel(kernel), None)
        return True

    def start(
        self,
        kernel: str | None,
        taken: Snapshot,
        shares: tuple[Share, ...],
        how: dict[str, Any],
    ) -> Qemu:
        """Start a machine: restored from the snapshot, else from a new one, else booted. `how`
        receives facts about it."""
        confined = self.confined()
        how["confinement"] = {
            "user": None if confined.user is None else confined.user[0],
            "is_hidden": confined.is_hidden,
        }
        if not taken.is_saved:
            how["started"] = "booted: QEMU saved no snapshot"
            return taken.boot(confined, shares, self.running)
        try:
            machine = taken.restore(confined, shares, self.running)
            how["started"] = "restored"
            return machine
        except (KilledError, SlowError):
            raise
        except HostError as error:
            because = error.what
        self.renew(kernel, taken, because)
        again = self.snapshot(kernel)
        try:
            machine = again.restore(confined, shares, self.running)
            how["started"] = f"restored from a rebuilt snapshot: {because}"
        except (KilledError, SlowError):
            raise
        except HostError as error:
            how["started"] = f"booted: {error.what}"
            machine = again.boot(confined, shares, self.running)
        return machine
