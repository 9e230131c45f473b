"""A real block device: touched only when named twice, in use by nothing, and empty unless forced.

A `RealDevice` can only be had from `claim`, and the native lab takes nothing else: no path reaches
mkfs unchecked.
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

from fscost.errors import HostError, InputError
from fscost.host import tool

BLKGETDISKSEQ = 0x80081280  # include/uapi/linux/fs.h: _IOR(0x12, 128, __u64)


class Descriptor:
    """An open device, closed with the last that knows of it. Not exclusive: mkfs and mount are to
    be that."""

    def __init__(self, path: Path) -> None:
        self._number: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """For ioctl and the like."""
        assert self._number is not None
        return self._number

    def close(self) -> None:
        """Now."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)

    __del__ = close


@dataclass(frozen=True)
class RealDevice:
    """A block device that a person has given up: its resolved path, and what tells it from another
    disk under that path.

    `diskseq` is never given to a second disk (since Linux 5.15), while names and numbers are.
    `descriptor` is held for the whole run.
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
        """For the agent, which opens the path once more."""
        return {"major": self.number[0], "minor": self.number[1], "diskseq": self.diskseq}

    @property
    def description(self) -> dict[str, str | int]:
        """For the manifest."""
        return {
            "device": str(self.path),
            "model": self.model,
            "serial": self.serial,
            "size_bytes": self.size_bytes,
        }

    def refuse_if_busy(self) -> None:
        """Asked again before each cell: still the same device, and still used by nothing."""
        if _described(self.path, Descriptor(self.path)) != self:
            raise HostError(
                f"{self.path} is not the disk that was confirmed any more",
                "was it unplugged? start again",
            )
        _refuse_busy(self.path, self.number)

    @property
    def is_rotational(self) -> bool:
        """What the kernel says."""
        return _queue(_sysfs(self.number), "rotational", 0) == 1

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep others from mounting it meanwhile; refuse another disk under that path."""
        self.refuse_if_busy()
        descriptor = os.open(self.path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
        try:
            if _number_of(os.fstat(descriptor)) != self.number:
                raise HostError(f"{self.path} is not the disk that was named", "start again")
            yield
        finally:
            os.close(descriptor)

    def openers(self) -> list[str]:
        """Other processes that have it open without claiming it, as a virtual machine or a database
        may."""
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
    """Check everything that may speak against erasing `device`; `erase` must name the same device.
    Touches nothing. `named_by`: the words before its path on the command line."""
    path = device.resolve()
    number = _number(path)
    if erase is None or erase.resolve() != path:
        shown = "nothing" if erase is None else str(erase)
        raise InputError(
            f"{device} was not confirmed: everything on it would be erased, and --erase-device names {shown}",
            f"if that is meant: {named_by}{device} --erase-device {device}",
        )
    _refuse_busy(path, number)
    if not force:
        _refuse_signature(path, number)
    return _described(path, Descriptor(path))


def look_at(device: Path) -> RealDevice:
    """A device that is only read; refused while something else uses it."""
    path = device.resolve()
    _refuse_busy(path, _number(path))
    return _described(path, Descriptor(path))


def _described(path: Path, descriptor: Descriptor) -> RealDevice:
    """What the descriptor leads to, not what its path leads to by now."""
    number = _number_of(os.fstat(descriptor.fileno()))
    folder, diskseq = _sysfs(number), bytearray(8)
    try:
        fcntl.ioctl(descriptor, BLKGETDISKSEQ, diskseq)
    except OSError as error:
        raise HostError(
            f"{path}: the kernel does not say which disk it is ({error.strerror})",
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
                f"{path} is in use: {', '.join(holders)} lies on {_name(part)}",
                "take that apart first, or name another device",
            )
    # Mounts of other namespaces, swap and RAID are not listed where we can look, but all hold the
    # device exclusively.
    for part in sorted(parts):
        node = path if part == number else Path("/dev") / _name(part)
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            raise InputError(
                f"{node} is in use ({error.strerror})",
                f"`lsblk {path}` and /proc/swaps say by what",
            ) from None


def _refuse_mounted(path: Path, part: tuple[int, int]) -> None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, tail = line.partition(" - ")
        shown_number, _, point = fields.split()[2:5]
        source = tail.split()[1]
        # btrfs shows an anonymous number, so its source is looked at too.
        if shown_number == f"{part[0]}:{part[1]}" or _same_device(source, part):
            where = "holds the running system" if point == "/" else f"is mounted at {point}"
            raise InputError(
                f"{path} is refused: {_name(part)} {where}",
                None if point == "/" else f"`umount {point}` first",
            )


def _same_device(source: str, part: tuple[int, int]) -> bool:
    if not source.startswith("/"):
        return False
    try:
        status = Path(source).stat()
    except OSError:
        return False
    return (
        stat.S_ISBLK(status.st_mode)
        and (os.major(status.st_rdev), os.minor(status.st_rdev)) == part
    )


def _refuse_signature(path: Path, number: tuple[int, int]) -> None:
    if _partitions(number):
        raise InputError(
            f"{path} has partitions", f"look with `lsblk -f {path}`; --force erases them"
        )
    wipefs = tool("wipefs")
    if wipefs is None:
        raise HostError(
            "wipefs is missing, so nobody can say whether the device is empty",
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
    """Empty for what has none; a partition's disk has it."""
    names = ("wwid", "serial", "device/wwid", "device/serial", "loop/backing_file")
    return _first(folder, *names, *(f"../{name}" for name in names))


def _queue(folder: Path, name: str, default: int = 512) -> int:
    """A value of the queue; a partition's is its disk's."""
    return int(_first(folder, f"queue/{name}", f"../queue/{name}") or default)


def _first(folder: Path, *names: str) -> str:
    for name in names:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (folder / name).read_text().strip()
    return ""
