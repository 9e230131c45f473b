"""A disk server that speaks NBD, started as the VM lab starts it: without root."""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fscost.lab.cell.binaries import find_binaries

MIB = 1 << 20
LIMIT_S = 120
"""Limit of every wait for something that comes soon on an idle host."""


@dataclass
class Server:
    """A running server. `uri` has its disks as exports."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    recording: Path
    socket_path: Path

    def uri(self, disk: str = "main") -> str:
        return f"nbd+unix:///{disk}?socket={self.socket_path}"

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        self.control.send(json.dumps(question).encode())
        answer: dict[str, Any] = json.loads(self.control.recv(1 << 20))
        return answer

    def mark(self, name: str) -> None:
        assert "marked" in self.ask({"mark": {"name": name, "detail": None}})

    def finish(self) -> dict[str, Any]:
        """Finish the recording, and return the server's totals."""
        finished: dict[str, Any] = self.ask({"finish": {}})["finished"]
        assert self.process.wait(LIMIT_S) == 0
        return finished


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*disks: str, address: str | None = None, more: Sequence[str] = ()) -> Server:
        """Start a server. `more` are arguments that name device models."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(LIMIT_S)
        path = tmp_path / f"nbd{len(servers)}.sock"
        recording = tmp_path / f"{len(servers)}.fscost"
        command = [
            find_binaries().disk,
            "serve",
            "--recording",
            recording,
            "--nbd",
            address or path,
            "--control-fd",
            str(theirs.fileno()),
        ]
        for disk in disks or (f"main={64 * MIB}",):
            command += ["--disk", disk]
        command += more
        process = subprocess.Popen(
            [*command, "--ppid", str(os.getpid())], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        server = Server(process, ours, recording, path)
        servers.append(server)
        assert "ready" in json.loads(ours.recv(1 << 16))
        return server

    yield start
    for server in servers:
        server.control.close()
        try:
            server.process.wait(LIMIT_S)
        finally:
            server.process.kill()
