"""A real block device: touched only when named twice, in use by nothing, and empty unless forced.

A `RealDevice` can only be had from `claim`, and the native lab takes nothing else: no path reaches mkfs unchecked.
"""

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import HostError, InputError
from fscost.host import tool


@dataclass(frozen=True)
class RealDevice:
    """A block device that a person has given up: its resolved path, and its number to know it again."""

    path: Path
    number: tuple[int, int]
    size_bytes: int
    model: str

    def refuse_if_busy(self) -> None:
        """Asked again before each cell: still the same device, and still used by nothing."""
        if _number(self.path) != self.number:
            raise HostError(f"{self.path} is not the device that was confirmed any more", "was it unplugged? start again")
        _refuse_busy(self.path, self.number)


def claim(device: Path, erase: Path | None, force: bool = False) -> RealDevice:
    """Check everything that may speak against erasing `device`; `erase` must name the same device. Touches nothing."""
    path = device.resolve()
    number = _number(path)
    if erase is None or erase.resolve() != path:
        shown = "nothing" if erase is None else str(erase)
        raise InputError(
            f"{device} was not confirmed: everything on it would be erased, and --erase-device names {shown}",
            f"if that is meant: --device {device} --erase-device {device}",
        )
    _refuse_busy(path, number)
    if not force:
        _refuse_signature(path, number)
    folder = _sysfs(number)
    return RealDevice(path, number, int((folder / "size").read_text()) * 512, _model(folder))


def _number(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "name a block device, for example one that `lsblk` lists") from None
    if not stat.S_ISBLK(status.st_mode):
        raise InputError(f"{path} is not a block device", "name one that `lsblk` lists")
    return os.major(status.st_rdev), os.minor(status.st_rdev)


def _refuse_busy(path: Path, number: tuple[int, int]) -> None:
    parts = {number, *_partitions(number)}
    for part in sorted(parts):
        _refuse_mounted(path, part)
        holders = sorted(holder.name for holder in (_sysfs(part) / "holders").glob("*"))
        if holders:
            raise InputError(f"{path} is in use: {', '.join(holders)} lies on {_name(part)}", "take that apart first, or name another device")
    # Mounts of other namespaces, swap and RAID are not listed where we can look, but all hold the device exclusively.
    for part in sorted(parts):
        node = path if part == number else Path("/dev") / _name(part)
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            raise InputError(f"{node} is in use ({error.strerror})", f"`lsblk {path}` and /proc/swaps say by what") from None


def _refuse_mounted(path: Path, part: tuple[int, int]) -> None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, tail = line.partition(" - ")
        shown_number, _, point = fields.split()[2:5]
        source = tail.split()[1]
        # btrfs shows an anonymous number, so its source is looked at too.
        if shown_number == f"{part[0]}:{part[1]}" or _same_device(source, part):
            where = "holds the running system" if point == "/" else f"is mounted at {point}"
            raise InputError(f"{path} is refused: {_name(part)} {where}", None if point == "/" else f"`umount {point}` first")


def _same_device(source: str, part: tuple[int, int]) -> bool:
    if not source.startswith("/"):
        return False
    try:
        status = Path(source).stat()
    except OSError:
        return False
    return stat.S_ISBLK(status.st_mode) and (os.major(status.st_rdev), os.minor(status.st_rdev)) == part


def _refuse_signature(path: Path, number: tuple[int, int]) -> None:
    if _partitions(number):
        raise InputError(f"{path} has partitions", f"look with `lsblk -f {path}`; --force erases them")
    wipefs = tool("wipefs")
    if wipefs is None:
        raise HostError("wipefs is missing, so nobody can say whether the device is empty", "`apt install util-linux`")
    answer = subprocess.run([wipefs, "--no-act", "--noheadings", "--output", "TYPE", path], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise HostError(f"wipefs could not read {path}: {answer.stderr.strip()}")
    found = ", ".join(dict.fromkeys(answer.stdout.split()))
    if found:
        raise InputError(f"{path} is not empty: it holds {found}", f"look with `wipefs {path}`; --force erases it")


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
    for name in ("device/model", "device/name"):
        try:
            return (folder / name).read_text().strip()
        except OSError:
            continue
    return "unknown"
