"""Two runs at once would measure each other: one at a time on a machine."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from fscost.errors import HostError

HOST = "fscost.run"


@contextmanager
def exclusive(name: str = HOST) -> Iterator[None]:
    """Held while the block runs. An abstract Unix socket (unix(7)) is no file: it goes with its process, even on SIGKILL, and leaves nothing behind."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        try:
            holder.bind(f"\0{name}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise HostError("another fscost run is going on, and the two would measure each other", "wait until it ends, or end it") from error
        yield
