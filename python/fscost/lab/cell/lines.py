"""Complete lines of what an agent says, which is a stranger's word: never too long, never waited
for without end."""

import os
import selectors
import time
from collections.abc import Iterator

from fscost.lab.cell.bounds import limit_bytes
from fscost.lab.cell.events import OverdueError, ProtocolError

_CHUNK_BYTES = 1 << 16


class Lines:
    """Of one stream. What was read beyond the line asked for last is kept for who asks next."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = bytearray()

    def until(self, deadline: float, silence_s: float = float("inf")) -> Iterator[bytes]:
        """To the stream's end; a last line without an end is damage, for the parser to say.

        ProtocolError at the deadline (of time.monotonic), when nothing comes for `silence_s`, and
        when a line is too long.
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
                if searched > limit_bytes(pending):
                    raise ProtocolError(f"a line longer than {limit_bytes(pending)} bytes")
                left_s = deadline - time.monotonic()
                # The time is up also for one that never stops talking.
                if left_s <= 0 or not selector.select(min(silence_s, left_s)):
                    if silence_s < left_s:
                        raise ProtocolError(f"it was silent for {silence_s:.0f} s")
                    raise OverdueError("it did not end in the time that its steps may take")
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
        # A socket whose other end was killed with something unread.
        return b""
