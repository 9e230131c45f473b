"""Loop devices that go with the process that attached them, even if it is killed: losetup(8) leaves
them attached."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# include/uapi/linux/loop.h
_CONFIGURE, _GET_FREE = 0x4C0A, 0x4C82
_AUTOCLEAR, _DIRECT_IO = 4, 16
_CONFIG = struct.Struct("=II52xI240x")
"""`struct loop_config`: descriptor, block size, flags."""


@contextmanager
def attached(backing: int, *, direct: bool = False) -> Iterator[Path]:
    """The node of a device on an open file; the kernel detaches it when its last user closes it."""
    flags = _AUTOCLEAR | (_DIRECT_IO if direct else 0)
    descriptor, node = _configured(_CONFIG.pack(backing, 0, flags))
    try:
        yield node
    finally:
        os.close(descriptor)


@contextmanager
def attached_file(image: Path) -> Iterator[Path]:
    """The node of a device on a file."""
    with image.open("r+b") as file, attached(file.fileno()) as node:
        yield node


def _configured(config: bytes) -> tuple[int, Path]:
    with Path("/dev/loop-control").open("rb") as control:
        while True:
            node = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            descriptor = os.open(node, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(descriptor, _CONFIGURE, config)
            except OSError as error:
                os.close(descriptor)
                if error.errno != errno.EBUSY:  # another process was faster
                    raise
            else:
                return descriptor, node
