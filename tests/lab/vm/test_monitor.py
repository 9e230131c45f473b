"""QEMU's monitor, played by the other end of a socket pair."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost.errors import HostError
from fscost.lab.vm.qmp import Monitor


@pytest.fixture
def monitor() -> Iterator[tuple[Monitor, socket.socket]]:
    """Yield a monitor and QEMU's end of its socket."""
    ours, theirs = socket.socketpair()
    theirs.sendall(greeting(7, 2))
    with Monitor(ours, limit_s=1) as made, theirs:
        yield made, theirs


def greeting(major: int, minor: int) -> bytes:
    """Return what QEMU says first, and its answer to `qmp_capabilities`."""
    version = {"qemu": {"major": major, "minor": minor, "micro": 1}, "package": "Debian"}
    return json.dumps({"QMP": {"version": version}}).encode() + b'\n{"return": {}}\n'


@pytest.mark.parametrize(
    ("version", "uri", "commands"),
    [
        ((7, 2), "fd:state", ["getfd"]),
        ((9, 0), "fd:state", ["getfd"]),
        ((9, 1), "file:/dev/fdset/3", ["add-fd"]),
        ((11, 0), "file:/dev/fdset/3", ["add-fd"]),
    ],
)
def test_a_stream_is_named_as_this_qemu_accepts_it(
    version: tuple[int, int], uri: str, commands: list[str]
) -> None:
    """QEMU 9.1 deprecated `fd:` for files, and 11.0 refuses it."""
    ours, theirs = socket.socketpair()
    theirs.sendall(greeting(*version) + b'{"return": {"fdset-id": 3, "fd": 20}}\n')
    with Monitor(ours, limit_s=1) as made, theirs, Path("/dev/null").open("rb") as file:
        assert made.add_stream(file.fileno()) == uri
        data, descriptors, *_ = socket.recv_fds(theirs, 4096, 2)
    asked = [json.loads(line)["execute"] for line in data.splitlines()]
    assert asked == ["qmp_capabilities", *commands]
    [received] = descriptors
    os.close(received)


@pytest.mark.parametrize("says", [b'{"QMP": {}}\n', b'{"QMP": {"version": {"qemu": []}}}\n'])
def test_a_monitor_without_a_version(says: bytes) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(says)
    with ours, theirs, pytest.raises(HostError, match="no version"):
        Monitor(ours, limit_s=1)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (
            b'{"event": "STOP"}\n{"error": {"desc": "no such device"}}\n',
            "QEMU refused query-migrate: no such device",
        ),
        (b'{"return": {"status": "failed"}}\n', r"snapshot \(failed\)"),
        (b"[]\n", "has ended"),
        (b"nonsense\n", "monitor"),
        (b"", "monitor"),
    ],
)
def test_what_qemu_may_answer(
    monitor: tuple[Monitor, socket.socket], says: bytes, words: str
) -> None:
    made, theirs = monitor
    theirs.sendall(says)
    with pytest.raises(HostError, match=words):
        made.wait_migrated(120)


def test_a_snapshot_that_takes_too_long(monitor: tuple[Monitor, socket.socket]) -> None:
    made, theirs = monitor
    theirs.sendall(b'{"return": {"status": "active"}}\n' * 20)
    with pytest.raises(HostError, match=r"snapshot in 0 s \(active\)"):
        made.wait_migrated(0.05)
