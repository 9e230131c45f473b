"""A guest that examines states: it runs one program, and the host fills its disks.

Each disk is memory that the host shares with QEMU. The host changes it only while the guest has the
disk closed: the guest's kernel then reads it anew (block/bdev.c, blkdev_flush_mapping).
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fscost
from fscost import host
from fscost.errors import HostError
from fscost.lab.cell.events import Bye, Failed, ProtocolError
from fscost.lab.cell.lines import Lines
from fscost.lab.vm import nbd
from fscost.lab.vm.confinement import Share, seen_python
from fscost.lab.vm.disks import ROOT, DiskServer, give, plug_disk
from fscost.lab.vm.guests import Guests
from fscost.lab.vm.port import Port
from fscost.lab.vm.qemu import Qemu
from fscost.profile.model import DiskSpec

_PACKAGE = Share("input", Path(fscost.__file__).resolve().parents[1])
_SHARES = (ROOT, _PACKAGE)
_START = "import sys; sys.path.insert(0, '/run/fscost/input'); from {0} import main; main()"
_FOREVER_S = 1e9
_MOST_LINE_BYTES, _MOST_VALUES = 8 << 20, 1 << 18
"""Limits of an answer. The digests of 16 MiB and the names of 4,000 files are 60,000 values."""
_SENT_S = 300
"""Time in which a guest must read a line."""
_OFF_S = 20
_WATCHED_S, _LEAST_BYTES = 0.2, 512 << 20
"""How often a guest's disks are looked at, and the memory that they must leave to the host."""


@dataclass(frozen=True)
class StateDisk:
    """A disk of the guest."""

    name: str
    size_bytes: int
    sector_bytes: int


class Examining:
    """A guest whose program answers. `files`: descriptors of the memory behind its disks, in
    order."""

    def __init__(self, machine: Qemu, files: Sequence[int]) -> None:
        self.files = files
        self._machine = machine
        machine.control.settimeout(_SENT_S)
        self._lines = Lines(machine.control.fileno(), _MOST_LINE_BYTES)
        self.failed = ""
        """Why the program ended, according to the guest's agent."""

    def send(self, value: Mapping[str, Any]) -> None:
        """Send one line to the program. A guest that has ended cannot hear it."""
        with contextlib.suppress(OSError):
            self._machine.control.sendall(json.dumps(value).encode() + b"\n")

    def receive(self, limit_s: float) -> Any:
        """Return the program's next line, or None if the guest has ended, has not sent it after
        `limit_s`, or sends anything else. The guest is of no use then."""
        try:
            line = next(self._lines.until(time.monotonic() + limit_s), b"")
            is_long = sum(map(line.count, (b",", b"[", b"{"))) > _MOST_VALUES
            return None if is_long else json.loads(line)
        except (OSError, ProtocolError, ValueError, RecursionError):
            return None

    @property
    def was_killed(self) -> bool:
        """True if a signal from outside ended the guest: its state is not at fault."""
        return not self.failed and self._machine.was_killed()

    @property
    def last_words(self) -> list[str]:
        """What the guest's kernel said last."""
        return self._machine.last_words().splitlines()

    def listen(self, port: Port) -> None:
        """Hear the guest's agent, so that it never waits, until the guest ends."""

        def hear() -> None:
            with contextlib.suppress(HostError, ProtocolError, OSError, ValueError):
                for event in port.events(_FOREVER_S):
                    if isinstance(event, Failed):
                        self.failed = event.message
                    if isinstance(event, Bye):
                        return

        threading.Thread(target=hear, daemon=True).start()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """End the guest if its disks fill the host's memory: each may be of terabytes."""
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(_WATCHED_S):
                disks_bytes = sum(os.fstat(file).st_blocks for file in self.files) * 512
                room = host.memory_bytes("MemAvailable")
                if room < _LEAST_BYTES < disks_bytes:
                    self.failed = f"its disks fill the memory with {disks_bytes / 1e9:.1f} GB"
                    self._machine.kill()
                    return

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


class Recovering(Examining):
    """A guest whose disks are recorded."""

    def __init__(self, machine: Qemu, files: Sequence[int], server: DiskServer) -> None:
        super().__init__(machine, files)
        self._server = server

    def mark(self, name: str) -> None:
        """Set a mark in the recording."""
        self._server.ask({"mark": {"name": name}})

    def finish(self) -> None:
        """End the guest and its recording."""
        self._machine.kill()
        self._machine.wait(_OFF_S)
        self._server.ask({"finish": {}})


@contextmanager
def examining(
    guests: Guests, kernel: str | None, module: str, disks: Sequence[StateDisk]
) -> Iterator[Examining]:
    """Start a guest that runs `main` of a module of fscost, until the block ends."""
    with ExitStack() as stack:
        files = [_memory(disk, stack) for disk in disks]
        taken = guests.snapshot(kernel)
        machine = stack.enter_context(guests.start(kernel, taken, _SHARES, {}))
        found = Examining(machine, files)

        def plug() -> None:
            for number, (disk, file) in enumerate(zip(disks, files, strict=True)):
                _plug(machine, number, disk, file)

        _begin(found, machine, module, disks, plug)
        with found.watched():
            yield found


@contextmanager
def recovering(
    guests: Guests,
    kernel: str | None,
    module: str,
    disks: Sequence[StateDisk],
    images: Sequence[int],
    recording: Path,
) -> Iterator[Recovering]:
    """Do the same with disks that hold these images, and whose requests are recorded to a new
    file."""
    taken = guests.snapshot(kernel)
    words = [guests.disk_server, "serve", "--recording", str(recording)]
    for disk in disks:
        words += ["--disk", f"{disk.name}={disk.size_bytes},logical={disk.sector_bytes}"]
    words += [*(["--untimed"] if taken.accelerator.is_emulated else []), *guests.confined().as_user]
    with DiskServer(words, recording.with_name(f"{recording.name}.errors")) as server:
        server.heard_ready()
        for disk, image in zip(disks, images, strict=True):
            nbd.fill(server.name, disk.name, image)
        with guests.start(kernel, taken, _SHARES, {}) as machine:
            found = Recovering(machine, images, server)
            specs = [DiskSpec(disk.name, disk.size_bytes, disk.sector_bytes) for disk in disks]
            _begin(found, machine, module, disks, lambda: server.plug(machine, specs))
            yield found


def _begin(
    found: Examining,
    machine: Qemu,
    module: str,
    disks: Sequence[StateDisk],
    plug: Callable[[], None],
) -> None:
    """Order a guest to run a program, and plug in its disks."""
    order = {
        "root": ROOT.tag,
        "input": _PACKAGE.tag,
        "disks": [disk.name for disk in disks],
        "program": [
            *("/usr/bin/env", "PYTHONHASHSEED=0", seen_python(), "-P", "-S", "-c"),
            _START.format(module),
        ],
    }

    def go_on() -> None:
        plug()
        give(machine, _SHARES)

    port = Port(machine)
    try:
        port.order(order, go_on)
    except (HostError, OSError) as error:
        blamed = machine.blamed(HostError(getattr(error, "what", str(error))))
        raise type(blamed)(f"{blamed.what}; {machine.last_words()}") from None
    found.listen(port)


def _memory(disk: StateDisk, stack: ExitStack) -> int:
    file = os.memfd_create(f"fscost-{disk.name}")
    stack.callback(os.close, file)
    os.truncate(file, disk.size_bytes)
    return file


def _plug(machine: Qemu, number: int, disk: StateDisk, file: int) -> None:
    node = f"disk{number}"
    machine.monitor.execute(
        "blockdev-add",
        driver="file",
        filename=machine.monitor.add_file(file),
        # Nobody else can open it.
        locking="off",
        discard="unmap",
        **{"node-name": node},
    )
    plug_disk(machine, number, node, disk.name, disk.sector_bytes, disk.sector_bytes)
