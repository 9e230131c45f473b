"""The disks of a state: images behind loop devices, which detach by themselves."""

import errno
import fcntl
import os
import random
import re
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A  # include/uapi/linux/loop.h
_AUTOCLEAR, _DIRECT_IO = 4, 16
_CONFIG_BYTES, _FLAGS_AT = 304, 60
"""Size of struct loop_config, and place of info.lo_flags in it."""
_TRIES = 1000
_LONGEST_WAIT_S = 0.02
_NAMED = re.compile(r"(device|logdev|rtdev)=\{disk\.([A-Za-z0-9_.-]+)\}")
_OPTIONS = {"device": "journal_path", "logdev": "logdev", "rtdev": "rtdev"}
_CHECK_FLAGS = {"journal_path": "-j", "logdev": "-l", "rtdev": "-r"}
"""Flags of e2fsck(8) and xfs_repair(8) that name the other disk."""


@dataclass(frozen=True)
class Disk:
    """A disk of a profile. `option`: the mount option that names it; the main one has none.
    `is_member`: of the array of md that is the main disk of the file system."""

    name: str
    size_bytes: int
    sector_bytes: int = 512
    option: str = ""
    is_member: bool = False


def uses(type_: str, mkfs_flags: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the mount option that names each disk beside the main one. ext4 finds its journal by
    a device number of its mkfs, and xfs does not remember its log (admin-guide/{ext4,xfs}.rst)."""
    if type_ == "btrfs":
        return dict.fromkeys(names[1:], "device")
    found = (_NAMED.search(flag) for flag in mkfs_flags)
    return {match[2]: _OPTIONS[match[1]] for match in found if match}


def check_flags(disks: Sequence[Disk], devices: Sequence[Path | None]) -> list[str]:
    """Return the flags by which the check of a file system finds its other disks."""
    return [
        word
        for disk, device in zip(disks, devices, strict=True)
        if disk.option in _CHECK_FLAGS and device is not None
        for word in (_CHECK_FLAGS[disk.option], str(device))
    ]


def mount_options(disks: Sequence[Disk], devices: Sequence[Path | None]) -> list[str]:
    """Return the mount options that name the other disks. Those of btrfs can be named in any
    order."""
    pairs = zip(disks, devices, strict=True)
    return [f"{disk.option}={device}" for disk, device in pairs if disk.option and device]


@contextmanager
def attached(image: Path, sector_bytes: int, *, is_direct: bool = False) -> Iterator[Path]:
    """Attach an image to a loop device, until the block ends and nothing is mounted from it. The
    kernel detaches it even if this process is killed (LO_FLAGS_AUTOCLEAR, loop(4)). `is_direct`:
    requests reach the image as they are (LO_FLAGS_DIRECT_IO)."""
    backing = os.open(image, os.O_RDWR)
    try:
        loop, path = _configured(backing, sector_bytes, _DIRECT_IO * is_direct)
    finally:
        os.close(backing)
    try:
        yield path
    finally:
        # The image may be used again while another program still has the device open.
        os.fsync(loop)
        os.close(loop)


def _configured(backing: int, sector_bytes: int, flags: int) -> tuple[int, Path]:
    config = bytearray(_CONFIG_BYTES)
    struct.pack_into("II", config, 0, backing, sector_bytes)
    struct.pack_into("I", config, _FLAGS_AT, _AUTOCLEAR | flags)
    control = os.open("/dev/loop-control", os.O_RDWR)
    try:
        for _ in range(_TRIES):
            path = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            loop = os.open(path, os.O_RDWR)
            try:
                fcntl.ioctl(loop, _CONFIGURE, bytes(config))
            except OSError as error:
                os.close(loop)
                # Another process was faster; all of them try again, at different times.
                if error.errno != errno.EBUSY:
                    raise
                time.sleep(random.uniform(0, _LONGEST_WAIT_S))
                continue
            return loop, path
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, "every free loop device is taken at once")
