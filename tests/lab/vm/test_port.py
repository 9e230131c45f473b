"""Misuse of the events port by a guest: each case is one clear error, in bounded time and
memory."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fscost.errors import HostError
from fscost.lab.cell.events import Alive, Bye, Hello, Output, ProtocolError
from fscost.lab.vm import port
from fscost.lab.vm.port import Port

HELLO = b'{"event": "hello", "agent": "1", "kernel": "6.12"}\n'
ALIVE = b'{"event": "alive"}\n'


class Machine:
    """The part of a QEMU that a port needs; `guest` is the other end."""

    def __init__(self) -> None:
        self.events, self.guest = socket.socketpair()

    def last_words(self) -> str:
        return "Kernel panic - not syncing"


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.events.close()
    made.guest.close()


def heard(machine: Machine, limit_s: float = 120) -> list[Any]:
    return list(Port(machine).events(limit_s))  # type: ignore[arg-type]


def test_a_guest_that_keeps_to_the_protocol(machine: Machine) -> None:
    machine.guest.sendall(HELLO + ALIVE + b'{"event": "output", "text": "x"}\n{"event": "bye"}\n')
    machine.guest.shutdown(socket.SHUT_WR)
    told = Port(machine)  # type: ignore[arg-type]
    assert told.hello(120) == Hello("1", "6.12")
    read: list[bytes] = []
    told.order({"disks": ["main"]}, lambda: read.append(machine.guest.recv(1000)))
    assert read == [json.dumps({"disks": ["main"]}).encode() + b"\n"], (
        "it is there before the machine goes on"
    )
    assert list(told.events(120)) == [Alive(), Output("x"), Bye()]
    assert machine.guest.recv(10) == b"\n", "the guest waits for that before it powers off"


def test_an_order_may_be_longer_than_what_a_socket_holds(machine: Machine) -> None:
    order = {"plan": "x" * (4 << 20)}
    read = bytearray()

    def guest() -> None:
        while not read.endswith(b"\n"):
            read.extend(machine.guest.recv(1 << 20))

    runs = threading.Thread(target=guest)
    Port(machine).order(order, runs.start)  # type: ignore[arg-type]
    runs.join()
    assert json.loads(read) == order


@pytest.mark.parametrize(
    "said",
    [
        b"\xff\xfe\x00\n",
        b"{}\n",
        b"[]\n",
        b'"hello"\n',
        b'{"event": "reboot"}\n',
        b'{"event": "output", "text": 7}\n',
        b'{"event": "output", "text": "\\ud800"}\n',
        b"[" * 100_000 + b"\n",
        b'{"event": "ali',
    ],
)
def test_nonsense_is_told_with_the_kernels_words(machine: Machine, said: bytes) -> None:
    machine.guest.sendall(ALIVE + said)
    machine.guest.shutdown(socket.SHUT_WR)
    with pytest.raises(ProtocolError, match="last kernel messages: Kernel panic"):
        heard(machine)


def test_a_line_without_an_end(machine: Machine) -> None:
    with flood(machine, lambda: b"x" * 65536), pytest.raises(ProtocolError, match="longer than"):
        heard(machine)


def test_one_that_never_ends_to_talk(machine: Machine) -> None:
    with (
        flood(machine, lambda: ALIVE * 1000),
        pytest.raises(ProtocolError, match="exceeded the time limits"),
    ):
        heard(machine, limit_s=0.5)


def test_silence(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "SILENCE_S", 0.2)
    with pytest.raises(ProtocolError, match="silent"):
        heard(machine)


@pytest.mark.parametrize("said", [b"", b"nonsense\n", ALIVE])
def test_a_guest_that_does_not_come(machine: Machine, said: bytes) -> None:
    machine.guest.sendall(said)
    machine.guest.shutdown(socket.SHUT_WR)
    with pytest.raises(HostError, match="did not start"):
        Port(machine).hello(120)  # type: ignore[arg-type]


class flood:  # noqa: N801  # reads as a statement
    """Send the same message again and again, as fast as it is read."""

    def __init__(self, machine: Machine, what: Callable[[], bytes]) -> None:
        self._guest = machine.guest
        self._thread = threading.Thread(target=self._talk, args=(what(),))
        self._is_over = False

    def _talk(self, words: bytes) -> None:
        self._guest.settimeout(0.1)
        while not self._is_over:
            try:
                self._guest.send(words)
            except OSError:
                time.sleep(0.01)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()
