"""Recorded disks of a guest: one disk server on the host, which serves QEMU over NBD and receives
marks from the guest's agent."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from fscost import files
from fscost.errors import HostError
from fscost.lab.vm.confinement import Share
from fscost.lab.vm.qemu import Qemu
from fscost.profile.model import DiskSpec

ROOT = Share("root", Path("/"))
_ROOT_SLOT, _INPUT_SLOT = 0x6, 0x7
FIRST_SLOT = 0x8
MAX_DISKS = 0x20 - FIRST_SLOT
_MESSAGE_BYTES = 1 << 20
_END_S = 10
ANSWER_S = 60
"""Time limit for an answer of the server, which takes milliseconds on a quiet host."""
_AGENT_GONE = 3  # crates/device/src/main.rs
_DYING_S = 5.0
"""Seconds to wait for the end of a process whose connections are closed already; on a busy host
this may take long."""


def plug_disk(
    machine: Qemu, number: int, node: str, serial: str, logical_bytes: int, physical_bytes: int
) -> None:
    """Plug in a node as a virtio-blk device."""
    machine.plug(
        "virtio-blk-pci",
        FIRST_SLOT + number,
        drive=node,
        serial=serial,
        # Each request of the guest is one request of the recording.
        **{"request-merging": False},
        logical_block_size=logical_bytes,
        physical_block_size=physical_bytes,
        # Otherwise QEMU reads the first sector to guess the geometry (hw/block/hd-geometry.c), a
        # read that no guest requested.
        cyls=1024,
        heads=16,
        secs=63,
    )


def give(machine: Qemu, shares: Sequence[Share]) -> None:
    """Plug folders into a machine, then let it continue."""
    for share, slot in zip(shares, (_ROOT_SLOT, _INPUT_SLOT), strict=False):
        machine.plug("virtio-9p-pci", slot, fsdev=share.tag, mount_tag=share.tag)
    machine.monitor.execute("cont")


class ServerError(HostError):
    """The disk server failed, rather than the guest."""


@contextlib.contextmanager
def answering(server: socket.socket) -> Iterator[None]:
    """Limit the time of each call on a connection to the server; ServerError if it is exceeded."""
    server.settimeout(ANSWER_S)
    try:
        yield
    except TimeoutError:
        raise ServerError(f"the disk server did not answer for {ANSWER_S} s") from None
    finally:
        server.settimeout(None)


class DiskServer:
    """An `fscost-disk serve --nbd` process, ended when the block ends. Its socket is abstract
    (unix(7)): it lies in no folder, and serves only the caller's own user."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        self.name = f"fscost-{secrets.token_hex(8)}"
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        end = theirs.fileno()
        options = ["--nbd", f"@{self.name}", "--control-fd", str(end), "--ppid", str(os.getpid())]
        with theirs, files.growing(errors, again=True) as stderr:
            self._process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=[end],
                process_group=0,
            )
        self._relay: list[threading.Thread] = []
        self._is_finished = False

    @property
    def pid(self) -> int:
        """Process ID of the server."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until the server is ready. The ready message stays in the socket for the guest's
        agent, which expects it."""
        ready = b""
        with answering(self._ours), contextlib.suppress(ConnectionError):
            ready = self._ours.recv(_MESSAGE_BYTES, socket.MSG_PEEK)
        if not ready.startswith(b'{"ready"'):
            raise ServerError(
                f"the disk server did not start: {ready.decode(errors='replace') or 'it ended'}"
            )

    def check(self) -> None:
        """Raise ServerError if the server has ended: its end then explains any other failure. A
        server that ended because its agent disappeared is not at fault: the guest failed first."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if (status := self._process.wait(timeout=_DYING_S)) != _AGENT_GONE:
                raise ServerError(f"the disk server ended with status {status}")

    def check_killed(self) -> None:
        """Raise ServerError if a signal ended the server. It normally exits when its guest ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if (status := self._process.wait(timeout=_DYING_S)) < 0:
                raise ServerError(f"the disk server ended with status {status}")

    def ask(self, message: Mapping[str, object]) -> None:
        """Send a message in place of a guest's agent, and wait for the answer."""
        with answering(self._ours):
            self._ours.sendall(json.dumps(message).encode())
            answer = self._ours.recv(_MESSAGE_BYTES) or b'{"error": "it ended"}'
        self._is_finished = answer.startswith(b'{"finished"')
        if answer.startswith(b'{"error"'):
            raise ServerError(f"the disk server failed: {answer.decode(errors='replace')}")

    def heard_ready(self) -> None:
        """Take the ready message, which nobody else expects."""
        self.wait_ready()
        self._ours.recv(_MESSAGE_BYTES)

    def relay(self, machine: Qemu) -> tuple[int, ...]:
        """Relay messages between the guest's port, one line each, and the server, one packet each.
        Return the IDs of the relaying threads."""
        self._relay = [
            threading.Thread(target=self._to_server, args=(machine.control,), daemon=True),
            threading.Thread(target=self._to_guest, args=(machine.control,), daemon=True),
        ]
        for thread in self._relay:
            thread.start()
        return tuple(thread.native_id for thread in self._relay if thread.native_id is not None)

    def plug(self, machine: Qemu, disks: Sequence[DiskSpec]) -> None:
        """Plug in each disk as a virtio-blk device whose serial number is the disk's name."""
        for number, disk in enumerate(disks):
            node = f"disk{number}"
            machine.monitor.execute(
                "blockdev-add",
                driver="nbd",
                server={"type": "unix", "path": self.name, "abstract": True},
                export=disk.name,
                discard="unmap",
                **{"node-name": node},
            )
            plug_disk(
                machine,
                number,
                node,
                disk.name,
                disk.logical_block_bytes,
                disk.physical_block_bytes,
            )

    def _to_server(self, port: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), port.makefile("rb") as lines:
            while len(line := lines.readline(_MESSAGE_BYTES)) < _MESSAGE_BYTES and line.endswith(
                b"\n"
            ):
                self._ours.sendall(line[:-1])
        # The guest has hung up or sends invalid messages. Without a peer, the server ends.
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    def _to_guest(self, port: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while message := self._ours.recv(_MESSAGE_BYTES):
                self._is_finished = message.startswith(b'{"finished"')
                port.sendall(message + b"\n")
            port.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """End the server, after the machine has ended. A server that was told to finish ends by
        itself; any other has no peer left, and is killed."""
        try:
            self._process.wait(timeout=_END_S if self._is_finished else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._relay:
            thread.join(timeout=_END_S)
        self._ours.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
