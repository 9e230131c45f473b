"""A served disk with a model, as a block device: a target for calibration."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.loop_devices import attached

from fscost.lab.cell.binaries import find_binaries

Served = Callable[[str, int], Path]


@contextmanager
def served_device(model: str, size_bytes: int, folder: Path) -> Iterator[Path]:
    """Serve a disk whose timing follows `model`, the text of a TOML file, and yield its loop
    device."""
    (folder / "model.toml").write_text(model)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [find_binaries().disk, "serve", "--recording", folder / "recording"]
    command += ["--control-fd", str(theirs.fileno())]
    command += ["--disk", f"main={size_bytes}", "--model", f"main={folder / 'model.toml'}"]
    with ours, theirs, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as server:
        # Detect a server that ends.
        theirs.close()
        try:
            _, [mount], _, _ = socket.recv_fds(ours, 1 << 16, 1)
            file = os.open("main", os.O_RDWR, dir_fd=mount)
            os.close(mount)
            with attached(file, direct=True) as node:
                os.close(file)
                # The kernel's reads of the new device come before the test's requests.
                ours.send(b'{"mark": {"name": "use", "detail": null}}')
                assert b"marked" in ours.recv(1 << 16)
                yield node
            ours.send(b'{"mark": {"name": "end", "detail": null}}')
            assert b"marked" in ours.recv(1 << 16)
            ours.send(b'{"finish": {}}')
            assert server.wait(120) == 0
        finally:
            server.kill()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with ExitStack() as stack:

        def start(model: str, size_bytes: int) -> Path:
            return stack.enter_context(served_device(model, size_bytes, tmp_path))

        yield start
