"""What `fscost doctor` looks at for the native lab, and what that refuses to start without."""

import ctypes
import errno
import fcntl
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import HostError
from fscost.host.machine import memory_bytes
from fscost.host.tools import install_command, kernel_has, tool

CAP_SYS_ADMIN = 21  # include/uapi/linux/capability.h
MOUNT_SETATTR_SYSCALL = 442  # the same number on every architecture (since 5.1 numbers are shared)
_DEVICES = {"/dev/fuse": (10, 229), "/dev/loop-control": (10, 237)}  # include/linux/miscdevice.h
LOOP_CONFIGURE = 0x4C0A  # include/uapi/linux/loop.h
BASE_CANDIDATES = (Path("/mnt"), Path("/media"), Path("/srv"), Path("/opt"))


@dataclass(frozen=True)
class Check:
    """One thing looked at. `required` ones stop every cell; the others only some. `remedy` is empty
    when `ok`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = False


def base_directory(candidates: Iterable[Path] | None = None) -> Path:
    """A directory that the agent may cover with its private tmpfs: empty and no mount point, so
    that nothing is hidden from a workload."""
    tried = []
    for candidate in candidates or BASE_CANDIDATES:
        tried.append(str(candidate))
        try:
            if (
                candidate.is_dir()
                and not os.path.ismount(candidate)
                and not any(candidate.iterdir())
            ):
                return candidate
        except OSError:
            continue
    raise HostError(
        f"no empty directory to mount on: none of {', '.join(tried)} is an empty directory and no mount point",
        "empty one of them, for example `mkdir -p /srv`",
    )


def checks(
    binaries: Iterable[tuple[str, Path | None]] = (),
    tools: Iterable[str] = (),
    out: Path | None = None,
) -> list[Check]:
    """Everything `fscost doctor` prints: what is required first, then file systems and tools, then
    room."""
    return [
        *required_checks(),
        *(_binary(name, path) for name, path in binaries),
        *(_front_end(path) for name, path in binaries if name == "fscost-disk" and path),
        *(_file_system(name, _MKFS.get(name, f"mkfs.{name}")) for name in _FILE_SYSTEMS),
        *(_tool(name) for name in dict.fromkeys([*_WORKLOAD_TOOLS, *tools])),
        _space(out or Path.cwd()),
        _memory(),
    ]


def required_checks() -> list[Check]:
    """Those without which no cell can run."""
    return [
        _root(),
        _sys_admin(),
        *map(_device, ("/dev/fuse", "/dev/loop-control")),
        _mount_api(),
        _loop_configure(),
        _base(),
    ]


def require() -> None:
    """Raise for the first condition that stops every cell."""
    for check in required_checks():
        if not check.ok:
            raise HostError(f"{check.name}: {check.detail}", check.remedy)


_FILE_SYSTEMS = (
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "jfs",
    "nilfs2",
    "reiserfs",
    "ntfs3",
    "exfat",
    "vfat",
)
_MKFS = {"ntfs3": "mkfs.ntfs"}  # where it is not called mkfs.TYPE
_WORKLOAD_TOOLS = ("git", "make", "cc", "tar", "fio", "sqlite3", "find", "python3")


def _root() -> Check:
    if os.geteuid() == 0:
        if not _owns_machine(Path("/proc/self/uid_map").read_text()):
            remedy = "run as root of the machine, or use --lab vm, which needs no privilege"
            return Check(
                "root",
                False,
                "this is root inside a user namespace, which may not mount most file systems",
                remedy,
                required=True,
            )
        return Check("root", True, "user 0", required=True)
    return Check(
        "root",
        False,
        f"this is user {os.geteuid()}; mounting needs root",
        "run it again with sudo",
        required=True,
    )


def _owns_machine(uid_map: str) -> bool:
    """Whether every user is itself (user_namespaces(7)): so it is in the first user namespace, and
    next to nowhere else."""
    return uid_map.split() == ["0", "0", "4294967295"]


def _sys_admin() -> Check:
    effective = 0
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
    if effective >> CAP_SYS_ADMIN & 1:
        return Check("CAP_SYS_ADMIN", True, "held", required=True)
    remedy = "run as root outside of a container, or start the container with --privileged"
    return Check("CAP_SYS_ADMIN", False, "not held; mounting needs it", remedy, required=True)


def _device(path: str) -> Check:
    module = {"/dev/fuse": "fuse", "/dev/loop-control": "loop"}[path]
    try:
        # A container may have something else in its place, which opens as well.
        found = Path(path).stat()
        if not stat.S_ISCHR(found.st_mode) or found.st_rdev != os.makedev(*_DEVICES[path]):
            raise OSError(errno.ENODEV, "it is another device or file")
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        remedy = f"`modprobe {module}`; in a container, pass the device: --device {path}"
        return Check(path, False, os.strerror(error.errno or 0), remedy, required=True)
    return Check(path, True, "opens", required=True)


def _mount_api() -> Check:
    """mount_setattr(2), since 5.12. Asked with a null argument of no size: a kernel that knows the
    call says so otherwise than by ENOSYS."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(MOUNT_SETATTR_SYSCALL, -1, None, 0, None, 0)
    known = ctypes.get_errno() != errno.ENOSYS
    return _kernel_feature("mount API", "mount_setattr(2)", "5.12", known)


def _loop_configure() -> Check:
    """LOOP_CONFIGURE, since 5.8. Asked with a bad address on any loop device: EFAULT when it is
    known (`lo_ioctl` copies first).

    Without a loop device to ask, the answer is left to the first cell, which makes one.
    """
    for node in sorted(Path("/dev").glob("loop[0-9]*")):
        try:
            fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.ioctl(fd, LOOP_CONFIGURE, 0)
        except OSError as error:
            return _kernel_feature(
                "loop devices", "LOOP_CONFIGURE", "5.8", error.errno == errno.EFAULT
            )
        finally:
            os.close(fd)
    return Check("loop devices", True, "none exists yet; the first cell makes one", required=True)


def _kernel_feature(name: str, feature: str, since: str, known: bool) -> Check:
    release = os.uname().release
    if known:
        return Check(name, True, f"Linux {release} has {feature}", required=True)
    return Check(
        name,
        False,
        f"Linux {release} lacks {feature}",
        f"boot Linux {since} or later",
        required=True,
    )


def _base() -> Check:
    try:
        return Check("mount base", True, str(base_directory()), required=True)
    except HostError as error:
        return Check("mount base", False, error.what, error.remedy or "", required=True)


def _binary(name: str, path: Path | None) -> Check:
    if path is None:
        return Check(name, False, "not found", "run `make setup`", required=True)
    return Check(name, True, str(path), required=True)


def front_end(server: Path) -> tuple[str, str]:
    """How the kernel would reach recorded disks, `ublk` or `fuse`, and why it is not ublk."""
    try:
        ended = subprocess.run(
            [server, "front-end"], check=True, capture_output=True, text=True, timeout=10
        )
        told = json.loads(ended.stdout)
        return str(told["front_end"]), str(told["because"] or "")
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return "fuse", f"{server} does not say: {error}"


def _front_end(server: Path) -> Check:
    name, because = front_end(server)
    if name == "ublk":
        return Check("front end", True, "ublk: a block device of its own for each recorded disk")
    absent = "/dev/ublk-control: No such file" in because
    hint = " (`modprobe ublk_drv`, Linux 6.5 or later)" if absent else ""
    return Check("front end", True, f"FUSE and loop devices; not ublk: {because}{hint}")


def _file_system(name: str, mkfs: str) -> Check:
    if tool(mkfs) is None:
        return Check(name, False, f"{mkfs} is missing", f"`{install_command([mkfs])}`")
    if not kernel_has(name):
        return Check(
            name,
            False,
            f"not in Linux {os.uname().release}",
            "`--lab vm` runs it in a virtual machine",
        )
    return Check(name, True, f"in the kernel, {tool(mkfs)}")


def _tool(name: str) -> Check:
    found = tool(name)
    if found is None:
        return Check(name, False, "not installed", f"`{install_command([name])}`")
    return Check(name, True, str(found))


def _space(folder: Path) -> Check:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    remedy = "" if free >= 4 << 30 else "free some, or choose another folder with --out"
    return Check("free space", not remedy, f"{free / 1e9:.1f} GB at {folder}", remedy)


def _memory() -> Check:
    available = memory_bytes("MemAvailable")
    remedy = "" if available >= 1 << 30 else "close other programs; a cell needs about 1 GiB"
    return Check("free memory", not remedy, f"{available / 1e9:.1f} GB", remedy)
