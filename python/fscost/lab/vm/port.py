"""The events port of a guest: lines in; one order out, and one line when the last was heard."""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from fscost.errors import HostError
from fscost.lab.cell.events import Bye, Event, Hello, ProtocolError, parse
from fscost.lab.cell.lines import Lines
from fscost.lab.vm.qemu import Qemu

SILENCE_S = 300
"""A guest says that it is alive every other second of its own time. At a load of 15 for each
processor, an emulated one took more than two minutes for that."""


class Port:
    """Of one running machine."""

    def __init__(self, machine: Qemu) -> None:
        self._machine = machine
        self._lines = Lines(machine.events.fileno())

    def hello(self, limit_s: float) -> Hello:
        """What the guest says once it is there; HostError when it does not come."""
        because = "it ended"
        try:
            for line in self._lines.until(time.monotonic() + limit_s + 1, silence_s=limit_s):
                event = parse(line)
                if isinstance(event, Hello):
                    return event
        except ProtocolError as error:
            because = str(error)
        words = self._machine.last_words()
        raise HostError(
            f"the guest did not start: {because}{words and chr(10)}{words}",
            "`fscost doctor` looks at what the VM lab needs",
        )

    def order(self, order: dict[str, Any], go_on: Callable[[], None]) -> None:
        """What the guest is to do. What of it a socket holds lies there before a machine that was
        stopped goes on: it comes at no instant of the host's."""
        line = json.dumps(order).encode() + b"\n"
        sent = self._machine.events.send(line, socket.MSG_DONTWAIT)
        go_on()
        self._machine.events.sendall(line[sent:])

    def events(self, limit_s: float) -> Iterator[Event]:
        """Until the guest hangs up. ProtocolError, with what its kernel said last, when it is
        silent for too long, or talks too long or nonsense."""
        try:
            for line in self._lines.until(time.monotonic() + limit_s, SILENCE_S):
                event = parse(line)
                if isinstance(event, Bye):
                    # It waits for that: what QEMU has not handed over when the machine powers off
                    # is lost.
                    with contextlib.suppress(OSError):
                        self._machine.events.sendall(b"\n")
                yield event
        except ProtocolError as error:
            words = self._machine.last_words()
            raise type(error)(
                f"{error}; its kernel said last: {words}" if words else str(error)
            ) from None
