"""Description of the machine for a run's manifest: times and mkfs defaults mean nothing without
it."""

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fscost import files
from fscost.host.tools import tool

_VERSION_COMMANDS = {
    "mkfs.ext4": ("mkfs.ext4", "-V"),
    "mkfs.xfs": ("mkfs.xfs", "-V"),
    "mkfs.btrfs": ("mkfs.btrfs", "--version"),
    "mkfs.f2fs": ("mkfs.f2fs", "-V"),
    "mkfs.jfs": ("mkfs.jfs", "-V"),
    "mkfs.nilfs2": ("mkfs.nilfs2", "-V"),
    "mkfs.reiserfs": ("mkfs.reiserfs", "-V"),
    "mkfs.ntfs": ("mkfs.ntfs", "--version"),
    "mkfs.exfat": ("mkfs.exfat", "-V"),
    "mkfs.vfat": ("fatlabel", "--version"),  # same package; mkfs.vfat has no option for it
    "mdadm": ("mdadm", "--version"),
    "fio": ("fio", "--version"),
    "sqlite3": ("sqlite3", "--version"),
    "git": ("git", "--version"),
}
_WRITEBACK_SETTINGS = (
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
    "dirtytime_expire_seconds",
)


def environment(out: Path | None = None) -> dict[str, Any]:
    """Collect kernel, CPU, memory, tool versions, page cache settings, and the file system that
    recordings are written to (`out`)."""
    uname = os.uname()
    return {
        "kernel": {"release": uname.release, "version": uname.version, "machine": uname.machine},
        "cpu": {"model": _cpu_model(), "cores": os.cpu_count() or 0},
        "memory_bytes": memory_bytes("MemTotal"),
        "virtualisation": _virtualisation(),
        "distribution": _distribution(),
        "tools": {
            name: _version(command)
            for name, command in _VERSION_COMMANDS.items()
            if tool(name) is not None
        },
        "writeback": {name: _read(Path("/proc/sys/vm") / name) for name in _WRITEBACK_SETTINGS},
        "fscost": fscost_version(),
        "disk_server": "FUSE-served file + loop device",
        "recordings_on": folder_facts(out or Path.cwd()),
    }


def folder_facts(folder: Path) -> dict[str, str]:
    """File system that holds `folder`. Times depend on it: a tmpfs has no disk behind it."""
    folder = existing(folder.absolute())
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    best: tuple[int, str, str] = (-1, "unknown", "")
    for mounted, point, kind, source in mounts():
        inside = folder == Path(point) or Path(point) in folder.parents
        # Files on btrfs have device numbers of their own, so the longest mount point decides if no
        # number matches.
        rank = len(point) + (1 << 16 if mounted == number else 0)
        if inside and rank > best[0]:
            best = (rank, kind, source)
    return {"folder": str(folder), "type": best[1], "source": best[2]}


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def mounts() -> Iterator[tuple[str, str, str, str]]:
    """Yield device number, mount point, type and source of each mount that this process sees
    (proc_pid_mountinfo(5))."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, tail = line.partition(" - ")
        _, _, number, _, point = fields.split()[:5]
        kind, source = tail.split()[:2]
        yield number, point, kind, source


def memory_bytes(field: str) -> int:
    """Value of a line of /proc/meminfo, in bytes; 0 if the line is missing."""
    value = files.proc_field(Path("/proc/meminfo"), field)
    return 0 if value is None else int(value.split()[0]) * 1024


def _cpu_model() -> str:
    names = ("model name", "Model", "cpu model")
    found = (files.proc_field(Path("/proc/cpuinfo"), name) for name in names)
    return next(filter(None, found), platform.machine())


def _virtualisation() -> str:
    """Name of the virtualisation, as a hint: systemd's answer, else whether the CPU reports a
    hypervisor."""
    if tool("systemd-detect-virt") is not None:
        answer = _output(("systemd-detect-virt",))
        if answer:
            return answer
    return (
        "unknown hypervisor"
        if re.search(r"^flags\s*:.* hypervisor\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        else "none"
    )


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _version(command: tuple[str, ...]) -> str:
    """First line of a tool's version output (mkfs.ext4 prints it to stderr)."""
    lines = _output(command).splitlines()
    return lines[0] if lines else "unknown"


def _output(command: tuple[str, ...]) -> str:
    program = tool(command[0])
    if program is None:
        return ""
    try:
        answer = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (answer.stdout.strip() or answer.stderr.strip())[:200]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def fscost_version() -> str:
    """Version of fscost, from its package."""
    try:
        return importlib.metadata.version("fscost")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
