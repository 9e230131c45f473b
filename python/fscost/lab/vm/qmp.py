"""QEMU's monitor (QMP): one JSON object a line over a Unix socket. What QEMU says is checked; it
may have died."""

import json
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from fscost.errors import HostError

_MAX_LINE_BYTES = 1 << 20


class SlowError(HostError):
    """QEMU did not answer in time, on a host that may be busy. That says nothing about a
    snapshot."""


class Monitor:
    """A connection to a QEMU that was told `-qmp unix:PATH` or given the other end of a socket
    pair."""

    def __init__(self, stream: socket.socket, limit_s: float = 120) -> None:
        self._stream = stream
        self._stream.settimeout(limit_s)
        self._lines = stream.makefile("rb")
        try:
            self._receive()  # the greeting
            self.execute("qmp_capabilities")
        except BaseException:
            self.close()
            raise

    def pass_file(self, name: str, descriptor: int) -> None:
        """What `fd:NAME` means from then on."""
        self._ask({"execute": "getfd", "arguments": {"fdname": name}}, [descriptor])

    def execute(self, command: str, **arguments: Any) -> Any:
        """Its answer; events in between are dropped."""
        return self._ask({"execute": command, "arguments": arguments})

    def _ask(self, question: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        command = question["execute"]
        text = json.dumps(question).encode() + b"\n"
        try:
            # Descriptors go with the first byte.
            sent = socket.send_fds(self._stream, [text], descriptors) if descriptors else 0
            self._stream.sendall(text[sent:])
        except OSError as error:
            raise HostError(f"QEMU's monitor: {error}") from None
        while True:
            answer = self._receive()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise HostError(
                    f"QEMU refused {command}: {answer['error'].get('desc', answer['error'])}",
                    "see the QEMU version: `fscost doctor`",
                )

    def wait_migrated(self, limit_s: float) -> None:
        """Until the migration under way, out or in, is complete."""
        deadline = time.monotonic() + limit_s
        while (found := self.execute("query-migrate").get("status")) != "completed":
            if found in ("failed", "cancelled"):
                raise HostError(
                    f"QEMU's snapshot is {found}", "it is made again when its folder is removed"
                )
            if time.monotonic() > deadline:
                raise SlowError(
                    f"QEMU's snapshot is {found} after {limit_s:.0f} s",
                    "end other programs: the host has no time for a guest",
                )
            time.sleep(0.01)

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.readline(_MAX_LINE_BYTES)
            answer = json.loads(line) if line else None
        except TimeoutError:
            raise SlowError(
                "QEMU's monitor is silent", "end other programs: the host has no time for a guest"
            ) from None
        except (OSError, ValueError) as error:
            raise HostError(f"QEMU's monitor: {error}") from None
        if not isinstance(answer, dict):
            raise HostError("QEMU has ended")
        return answer

    def close(self) -> None:
        """QEMU goes on."""
        self._lines.close()
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
