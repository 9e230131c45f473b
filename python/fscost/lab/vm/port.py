"""Events port of a guest: it sends lines, and receives one order and one line that acknowledges the
last event."""

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
"""Seconds of silence after which a guest is considered dead. A guest reports that it is alive every
two seconds of its own time; at a load of 15 per processor, an emulated one took more than two
minutes for that."""

GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH in guests (crates/agent/src/guest.rs): the same for all callers, because it lies on the
stack of each program, and emulated guests then execute other instructions."""


class Port:
    """Events port of one running machine."""

    def __init__(self, machine: Qemu) -> None:
        self._machine = machine
        self._lines = Lines(machine.events.fileno())

    def hello(self, limit_s: float) -> Hello:
        """Wait for the guest's hello; HostError if it does not arrive."""
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
            "`fscost doctor` checks the requirements of the VM lab",
        )

    def order(self, order: dict[str, Any], go_on: Callable[[], None]) -> None:
        """Send the guest its order. The part that fits into the socket is there before a stopped
        machine continues, so its arrival does not depend on the host's timing."""
        line = json.dumps(order).encode() + b"\n"
        sent = self._machine.events.send(line, socket.MSG_DONTWAIT)
        go_on()
        self._machine.events.sendall(line[sent:])

    def events(self, limit_s: float) -> Iterator[Event]:
        """Yield events until the guest hangs up. ProtocolError, with the last messages of its
        kernel, if it is silent for too long, exceeds its time, or sends invalid lines."""
        try:
            for line in self._lines.until(time.monotonic() + limit_s, SILENCE_S):
                event = parse(line)
                if isinstance(event, Bye):
                    # The guest waits for this line: data that QEMU has not delivered at power-off
                    # is lost.
                    with contextlib.suppress(OSError):
                        self._machine.events.sendall(b"\n")
                yield event
        except ProtocolError as error:
            words = self._machine.last_words()
            raise type(error)(
                f"{error}; last kernel messages: {words}" if words else str(error)
            ) from None
