"""Reader for the complete lines of an agent's untrusted output, with limits on line length and
waiting time."""

import os
import selectors
import time
from collections.abc import Iterator

from fscost.lab.cell.bounds import limit_bytes
from fscost.lab.cell.events import OverdueError, ProtocolError

_CHUNK_BYTES = 1 << 16


class Lines:
    """Lines of one stream. Bytes read beyond the last requested line are kept for the next
    caller."""

    def __init__(self, descriptor: int, most_bytes: int | None = None) -> None:
        """`most_bytes`: the limit of each line, in place of those of an agent's events."""
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._pending = bytearray()

    def until(self, deadline: float, silence_s: float = float("inf")) -> Iterator[bytes]:
        """Yield lines to the end of the stream. A last line without a newline is damage, which the
        parser reports.

        ProtocolError at the deadline (of time.monotonic), if no byte arrives for `silence_s`, or if
        a line is too long.
        """
        searched = 0
        pending = self._pending
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            while True:
                while (end := pending.find(b"\n", searched)) >= 0:
                    with memoryview(pending) as view:
                        line = bytes(view[:end])
                    del pending[: end + 1]
                    searched = 0
                    yield line
                searched = len(pending)
                most_bytes = self._most_bytes or limit_bytes(pending)
                if searched > most_bytes:
                    raise ProtocolError(f"a line longer than {most_bytes} bytes")
                left_s = deadline - time.monotonic()
                # The deadline also applies to an agent that never stops writing.
                if left_s <= 0 or not selector.select(min(silence_s, left_s)):
                    if silence_s < left_s:
                        raise ProtocolError(f"it was silent for {silence_s:.0f} s")
                    raise OverdueError("it exceeded the time limits of its steps")
                chunk = _read(self._descriptor)
                if not chunk:
                    break
                pending += chunk
        if pending:
            yield bytes(pending)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except ConnectionResetError:
        # The peer of the socket was killed with unread data.
        return b""
