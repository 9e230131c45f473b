"""Loop devices that end with the process that attached them, even if it is killed: losetup(8)
leaves them attached."""

import errno
import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

# include/uapi/linux/loop.h
_CONFIGURE, _ADD, _REMOVE, _GET_FREE = 0x4C0A, 0x4C80, 0x4C81, 0x4C82
_AUTOCLEAR, _DIRECT_IO = 4, 16
_CONFIG = struct.Struct("=II52xI240x")
"""`struct loop_config`: descriptor, block size, flags."""
_FIRST_OWN_NUMBER = 200
_SPARES = 4


@contextmanager
def attached(backing: int, *, direct: bool = False) -> Iterator[Path]:
    """Attach a device to an open file and yield its node; the kernel detaches it when its last user
    closes it."""
    flags = _AUTOCLEAR | (_DIRECT_IO if direct else 0)
    descriptor, node = _configured(_CONFIG.pack(backing, 0, flags))
    try:
        yield node
    finally:
        os.close(descriptor)


@contextmanager
def attached_file(image: Path) -> Iterator[Path]:
    """Attach a device to a file and yield its node."""
    with image.open("r+b") as file, attached(file.fileno()) as node:
        yield node


def _configured(config: bytes) -> tuple[int, Path]:
    with Path("/dev/loop-control").open("rb") as control:
        while True:
            node = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            try:
                descriptor = os.open(node, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENXIO):  # another process removed it
                    raise
                continue
            try:
                fcntl.ioctl(descriptor, _CONFIGURE, config)
            except OSError as error:
                os.close(descriptor)
                if error.errno != errno.EBUSY:  # another process was faster
                    raise
            else:
                return descriptor, node


@contextmanager
def own_loop_device(image: Path) -> Iterator[Path]:
    """Yield the node of a device that nobody else is given, even while it has no image.

    LOOP_CTL_GET_FREE gives the lowest device without an image, and some below this one are free.
    The device is removed afterwards, with all its settings.
    """
    with Path("/dev/loop-control").open("rb") as control, ExitStack() as stack:
        number = _FIRST_OWN_NUMBER + os.getpid() % 1000 * 10
        while not _added(control.fileno(), number):  # the number may be another process's
            number += _SPARES + 1
        stack.callback(_remove, control.fileno(), number, is_own=True)
        for spare in range(number - _SPARES, number):
            if _added(control.fileno(), spare):
                stack.callback(_remove, control.fileno(), spare)
        node = Path(f"/dev/loop{number}")
        subprocess.run(["losetup", node, image], check=True)
        stack.callback(lambda: subprocess.run(["losetup", "--detach", node], check=False))
        yield node


def replace_image(node: Path, image: Path) -> None:
    """Replace the image, as if one disk were unplugged and another one got its name and number."""
    subprocess.run(["losetup", "--detach", node], check=True)
    subprocess.run(["losetup", node, image], check=True)


def _added(control: int, number: int) -> bool:
    """Make a device with this number; False if there is one."""
    try:
        fcntl.ioctl(control, _ADD, number)
    except FileExistsError:
        return False
    return True


def _remove(control: int, number: int, *, is_own: bool = False) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        # A device is released shortly after it was detached; a spare one may be another program's.
        with suppress(OSError):
            fcntl.ioctl(control, _REMOVE, number)
            return
        if not is_own:
            return
        time.sleep(0.05)
