"""QEMU's monitor (QMP): one JSON object per line over a Unix socket. Answers are checked, because
QEMU may have died."""

import json
import socket
import time
from collections.abc import Sequence
from typing import Any, Self

from fscost.errors import HostError

_MAX_LINE_BYTES = 1 << 20
_STREAM_BY_PATH = (9, 1)
"""First version of QEMU that deprecates migration to a file by `fd:`, which 11.0 refuses. `file:`
exists since 8.2."""


class SlowError(HostError):
    """QEMU did not answer in time, possibly because the host is busy. This says nothing about a
    snapshot."""


class RefusedError(HostError):
    """QEMU answered a command with an error."""


class Monitor:
    """A connection to a QEMU that was started with `-qmp unix:PATH` or with the other end of a
    socket pair."""

    def __init__(self, stream: socket.socket, limit_s: float = 120) -> None:
        self._stream = stream
        self._stream.settimeout(limit_s)
        self._lines = stream.makefile("rb")
        try:
            self._version = _version(self._receive())
            self.execute("qmp_capabilities")
        except BaseException:
            self.close()
            raise

    def add_stream(self, descriptor: int) -> str:
        """Pass the descriptor of a file, open for reading or for writing only, to QEMU; return the
        URI of a migration from or to it."""
        if self._version >= _STREAM_BY_PATH:
            return f"file:{self.add_file(descriptor)}"
        self._ask({"execute": "getfd", "arguments": {"fdname": "state"}}, [descriptor])
        return "fd:state"

    def add_file(self, descriptor: int) -> str:
        """Pass a descriptor to QEMU; return the path by which it opens it, in the same mode."""
        answer = self._ask({"execute": "add-fd", "arguments": {}}, [descriptor])
        return f"/dev/fdset/{answer['fdset-id']}"

    def execute(self, command: str, **arguments: Any) -> Any:
        """Execute a command and return its answer. Events that arrive before it are dropped."""
        return self._ask({"execute": command, "arguments": arguments})

    def _ask(self, question: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        command = question["execute"]
        text = json.dumps(question).encode() + b"\n"
        try:
            # Descriptors are sent with the first byte.
            sent = socket.send_fds(self._stream, [text], descriptors) if descriptors else 0
            self._stream.sendall(text[sent:])
        except OSError as error:
            raise HostError(f"QEMU's monitor: {error}") from None
        while True:
            answer = self._receive()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RefusedError(
                    f"QEMU refused {command}: {answer['error'].get('desc', answer['error'])}",
                    "check the QEMU version with `fscost doctor`",
                )

    def wait_migrated(self, limit_s: float) -> None:
        """Wait until the current migration, outgoing or incoming, is complete."""
        deadline = time.monotonic() + limit_s
        while (found := self.execute("query-migrate").get("status")) != "completed":
            if found in ("failed", "cancelled"):
                raise HostError(
                    f"QEMU could not save or restore the snapshot ({found})",
                    "remove its folder, and fscost rebuilds it",
                )
            if time.monotonic() > deadline:
                raise SlowError(
                    f"QEMU did not save or restore the snapshot in {limit_s:.0f} s ({found})",
                    "close other programs: the host is too busy for a guest",
                )
            time.sleep(0.01)

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.readline(_MAX_LINE_BYTES)
            answer = json.loads(line) if line else None
        except TimeoutError:
            raise SlowError(
                "QEMU's monitor does not answer",
                "close other programs: the host is too busy for a guest",
            ) from None
        except (OSError, ValueError) as error:
            raise HostError(f"QEMU's monitor: {error}") from None
        if not isinstance(answer, dict):
            raise HostError("QEMU has ended")
        return answer

    def close(self) -> None:
        """Close the connection; QEMU keeps running."""
        self._lines.close()
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _version(greeting: dict[str, Any]) -> tuple[int, int]:
    """Return QEMU's version, which it reports first."""
    try:
        found = greeting["QMP"]["version"]["qemu"]
        return int(found["major"]), int(found["minor"])
    except (KeyError, TypeError, ValueError):
        raise HostError("QEMU's monitor: the greeting has no version") from None
