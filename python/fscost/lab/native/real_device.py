"""Real block devices, erased only if they are named twice, not in use, and empty unless forced.

The native lab takes its devices as `RealDevice`, which `claim` creates after all checks, so no
unchecked path reaches mkfs. `look_at` creates one that is only read.
"""

import contextlib
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fscost import files
from fscost.errors import HostError, InputError
from fscost.host import mounts, tool

BLKGETDISKSEQ = 0x80081280  # include/uapi/linux/fs.h: _IOR(0x12, 128, __u64)


class Descriptor:
    """An open device, closed with its last reference. It is not opened exclusively, because mkfs
    and mount must be able to do that."""

    def __init__(self, path: Path) -> None:
        self._number: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """Return the descriptor, for ioctl(2) and similar calls."""
        assert self._number is not None
        return self._number

    def close(self) -> None:
        """Close the device now."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)

    __del__ = close


@dataclass(frozen=True)
class RealDevice:
    """A block device that the user released for erasure: its resolved path, and the properties that
    distinguish it from another disk under that path.

    The kernel never reuses a `diskseq` (since Linux 5.15), while it reuses names and
    numbers. `descriptor` is held for the whole run.
    """

    path: Path
    number: tuple[int, int]
    diskseq: int
    size_bytes: int
    serial: str
    model: str
    logical_block_bytes: int
    physical_block_bytes: int
    descriptor: "Descriptor" = field(compare=False)

    @property
    def identity(self) -> dict[str, int]:
        """Identity for the agent, which opens the path again."""
        return {"major": self.number[0], "minor": self.number[1], "diskseq": self.diskseq}

    @property
    def description(self) -> dict[str, str | int]:
        """Description for the manifest."""
        return {
            "device": str(self.path),
            "model": self.model,
            "serial": self.serial,
            "size_bytes": self.size_bytes,
        }

    def refuse_if_busy(self) -> None:
        """Check again, before each cell, that the path leads to the same device and that the device
        is unused."""
        if _described(self.path, Descriptor(self.path)) != self:
            raise HostError(
                f"{self.path} is no longer the disk that was confirmed",
                "was it unplugged? start again",
            )
        _refuse_busy(self.path, self.number)

    @property
    def is_rotational(self) -> bool:
        """True if the kernel reports a rotational device."""
        return _queue(_sysfs(self.number), "rotational", 0) == 1

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep others from mounting the device while the block runs; refuse another disk under that
        path."""
        self.refuse_if_busy()
        with files.descriptor(self.path, os.O_RDONLY | os.O_EXCL) as opened:
            if _number_of(os.fstat(opened)) != self.number:
                raise HostError(f"{self.path} is not the disk that was named", "start again")
            yield

    def openers(self) -> list[str]:
        """List other processes that have the device open without claiming it, as a virtual machine
        or a database may."""
        found = []
        for folder in Path("/proc").glob("[0-9]*/fd"):
            if folder.parent.name == str(os.getpid()):
                continue
            with contextlib.suppress(OSError):
                if any(_is_number(entry, self.number) for entry in folder.iterdir()):
                    found.append(
                        f"{(folder.parent / 'comm').read_text().strip()} ({folder.parent.name})"
                    )
        return sorted(found)


def claim(
    device: Path, erase: Path | None, force: bool = False, named_by: str = "--device "
) -> RealDevice:
    """Check `device` for every reason not to erase it; `erase` must name the same device.
    The device is not changed. `named_by`: the words before its path on the command line."""
    path = device.resolve()
    number = _number(path)
    if erase is None or erase.resolve() != path:
        shown = "nothing" if erase is None else str(erase)
        raise InputError(
            f"{device} was not confirmed: everything on it would be erased, and --erase-device"
            f" names {shown}",
            f"to erase it: {named_by}{device} --erase-device {device}",
        )
    _refuse_busy(path, number)
    if not force:
        _refuse_signature(path, number)
    return _described(path, Descriptor(path))


def look_at(device: Path) -> RealDevice:
    """Open a device that is only read; InputError if it is in use."""
    path = device.resolve()
    _refuse_busy(path, _number(path))
    return _described(path, Descriptor(path))


def _described(path: Path, descriptor: Descriptor) -> RealDevice:
    """Describe the device behind the descriptor, which the path may no longer name."""
    number = _number_of(os.fstat(descriptor.fileno()))
    folder, diskseq = _sysfs(number), bytearray(8)
    try:
        fcntl.ioctl(descriptor, BLKGETDISKSEQ, diskseq)
    except OSError as error:
        raise HostError(
            f"{path}: the kernel gives no disk sequence number ({error.strerror})",
            "boot Linux 5.15 or later",
        ) from None
    size_bytes = int((folder / "size").read_text()) * 512
    return RealDevice(
        path,
        number,
        int.from_bytes(diskseq, sys.byteorder),
        size_bytes,
        _serial(folder),
        _model(folder),
        _queue(folder, "logical_block_size"),
        _queue(folder, "physical_block_size"),
        descriptor,
    )


def _is_number(entry: Path, number: tuple[int, int]) -> bool:
    status = entry.stat()
    return stat.S_ISBLK(status.st_mode) and _number_of(status) == number


def _number(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", "name a block device, for example one that `lsblk` lists"
        ) from None
    if not stat.S_ISBLK(status.st_mode):
        raise InputError(f"{path} is not a block device", "name one that `lsblk` lists")
    return _number_of(status)


def _number_of(status: os.stat_result) -> tuple[int, int]:
    return os.major(status.st_rdev), os.minor(status.st_rdev)


def _refuse_busy(path: Path, number: tuple[int, int]) -> None:
    parts = {number, *_partitions(number)}
    for part in sorted(parts):
        _refuse_mounted(path, part)
        holders = sorted(holder.name for holder in (_sysfs(part) / "holders").glob("*"))
        if holders:
            raise InputError(
                f"{path} is in use: {_name(part)} is held by {', '.join(holders)}",
                "stop the array or volume first, or name another device",
            )
    # Mounts in other namespaces, swap and RAID are not listed here, but all hold the device
    # exclusively.
    for part in sorted(parts):
        node = path if part == number else Path("/dev") / _name(part)
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            raise InputError(
                f"{node} is in use ({error.strerror})",
                f"check `lsblk {path}` and /proc/swaps, and stop what uses it",
            ) from None


def _refuse_mounted(path: Path, part: tuple[int, int]) -> None:
    for shown_number, point, _, source in mounts():
        # btrfs reports an anonymous device number, so compare the source, too.
        if shown_number == f"{part[0]}:{part[1]}" or _same_device(source, part):
            where = "holds the running system" if point == "/" else f"is mounted at {point}"
            raise InputError(
                f"{path} is refused: {_name(part)} {where}",
                None if point == "/" else f"`umount {point}` first",
            )


def _same_device(source: str, part: tuple[int, int]) -> bool:
    with contextlib.suppress(OSError):
        return source.startswith("/") and _is_number(Path(source), part)
    return False


def _refuse_signature(path: Path, number: tuple[int, int]) -> None:
    if _partitions(number):
        raise InputError(
            f"{path} has partitions", f"look with `lsblk -f {path}`; --force erases them"
        )
    wipefs = tool("wipefs")
    if wipefs is None:
        raise HostError(
            "wipefs is missing, so fscost cannot check that the device is empty",
            "`apt install util-linux`",
        )
    answer = subprocess.run(
        [wipefs, "--no-act", "--noheadings", "--output", "TYPE", path],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise HostError(f"wipefs could not read {path}: {answer.stderr.strip()}")
    found = ", ".join(dict.fromkeys(answer.stdout.split()))
    if found:
        raise InputError(
            f"{path} is not empty: it holds {found}",
            f"look with `wipefs {path}`; --force erases it",
        )


def _partitions(number: tuple[int, int]) -> list[tuple[int, int]]:
    found = []
    for entry in _sysfs(number).iterdir():
        if (entry / "partition").is_file():
            major, minor = (entry / "dev").read_text().split(":")
            found.append((int(major), int(minor)))
    return found


def _sysfs(number: tuple[int, int]) -> Path:
    return Path(f"/sys/dev/block/{number[0]}:{number[1]}")


def _name(number: tuple[int, int]) -> str:
    return _sysfs(number).resolve().name


def _model(folder: Path) -> str:
    return _first(folder, "device/model", "device/name") or "unknown"


def _serial(folder: Path) -> str:
    """Return the serial number (for a partition, its disk's); empty if there is none."""
    names = ("wwid", "serial", "device/wwid", "device/serial", "loop/backing_file")
    return _first(folder, *names, *(f"../{name}" for name in names))


def _queue(folder: Path, name: str, default: int = 512) -> int:
    """Return a value of the request queue (for a partition, its disk's)."""
    return int(_first(folder, f"queue/{name}", f"../queue/{name}") or default)


def _first(folder: Path, *names: str) -> str:
    for name in names:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (folder / name).read_text().strip()
    return ""
