"""Conditions that `fscost doctor` checks for the native lab, and those that the lab requires."""

import ctypes
import errno
import fcntl
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from fscost import files
from fscost.errors import HostError
from fscost.host.machine import existing, memory_bytes
from fscost.host.tools import install_command, kernel_has, tool
from fscost.profile.families import mkfs_programs

CAP_SYS_ADMIN = 21  # include/uapi/linux/capability.h
MOUNT_SETATTR_SYSCALL = 442  # on every architecture (numbers are shared since 5.1)
_DEVICES = {"/dev/fuse": (10, 229), "/dev/loop-control": (10, 237)}  # include/linux/miscdevice.h
LOOP_CONFIGURE = 0x4C0A  # include/uapi/linux/loop.h
FrontEnd = Literal["fuse", "ublk"]
FUSE: Final = "fuse"
BASE_CANDIDATES = (Path("/mnt"), Path("/media"), Path("/srv"), Path("/opt"))


@dataclass(frozen=True)
class Check:
    """Result of one check. A failed `required` check stops every cell; other failures stop only
    some. `remedy` is empty if `ok`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = False


def base_directory(candidates: Iterable[Path] | None = None) -> Path:
    """Find a directory that the agent may cover with its private tmpfs: empty and not a mount
    point, so that nothing is hidden from a workload."""
    tried = list(candidates or BASE_CANDIDATES)
    for candidate in tried:
        with suppress(OSError):
            is_free = candidate.is_dir() and not os.path.ismount(candidate)
            if is_free and not any(candidate.iterdir()):
                return candidate
    names = ", ".join(map(str, tried))
    raise HostError(
        f"no directory to mount on: each of {names} is missing, not empty, or already a mount"
        " point",
        "empty or create one of them, for example `mkdir -p /srv`",
    )


def checks(
    binaries: Sequence[tuple[str, Path | None]] = (),
    tools: Iterable[str] = (),
    out: Path | None = None,
) -> list[Check]:
    """Run all checks that `fscost doctor` prints: required conditions first, then file systems and
    tools, then free space and memory."""
    servers = [path for name, path in binaries if name == "fscost-disk" and path]
    found = [front_end(server) for server in servers]
    required = {name for name, _ in found} or {FUSE}
    return [
        *required_checks(required),
        # Real devices are always served over FUSE.
        *(replace(each, required=False) for each in _fuse_checks() if FUSE not in required),
        *(_binary(name, path) for name, path in binaries),
        *(_front_end(name, because) for name, because in found),
        *(_file_system(name, mkfs) for name, mkfs in mkfs_programs().items()),
        *(_tool(name) for name in dict.fromkeys([*_WORKLOAD_TOOLS, *tools])),
        _space(out or Path.cwd()),
        _memory(),
    ]


def required_checks(front_ends: Set[FrontEnd] = frozenset({FUSE})) -> list[Check]:
    """Run the checks that every cell needs if its disks are served over `front_ends`."""
    return [
        _root(),
        _sys_admin(),
        _mount_api(),
        *(_fuse_checks() if FUSE in front_ends else ()),
        _base(),
    ]


def _fuse_checks() -> list[Check]:
    """Check FUSE and the loop devices that it needs."""
    return [*map(_device, ("/dev/fuse", "/dev/loop-control")), _loop_configure()]


def require(front_ends: Set[FrontEnd]) -> None:
    """Raise HostError for the first failed condition that stops every cell over these front
    ends."""
    for check in required_checks(front_ends):
        if not check.ok:
            raise HostError(f"{check.name}: {check.detail}", check.remedy)


_WORKLOAD_TOOLS = ("git", "make", "cc", "tar", "fio", "sqlite3", "find", "python3")


def _root() -> Check:
    if os.geteuid() != 0:
        detail = f"this is user {os.geteuid()}; mounting needs root"
        return Check("root", False, detail, "run it again with sudo", required=True)
    if not owns_machine():
        detail = "this is root inside a user namespace, which may not mount most file systems"
        remedy = "run as root of the machine, or use --lab vm, which needs no privilege"
        return Check("root", False, detail, remedy, required=True)
    return Check("root", True, "user 0", required=True)


def owns_machine() -> bool:
    """True if the user ID map is the identity (user_namespaces(7)), which holds in the initial
    user namespace and almost nowhere else. Root of any other namespace is another user outside it,
    and may have no second user to switch to."""
    with suppress(OSError):
        return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    return True  # a kernel without user namespaces


def _sys_admin() -> Check:
    effective = int(files.proc_field(Path("/proc/self/status"), "CapEff") or "0", 16)
    if effective >> CAP_SYS_ADMIN & 1:
        return Check("CAP_SYS_ADMIN", True, "held", required=True)
    remedy = "run as root outside of a container, or start the container with --privileged"
    return Check("CAP_SYS_ADMIN", False, "not held; mounting needs it", remedy, required=True)


def _device(path: str) -> Check:
    module = {"/dev/fuse": "fuse", "/dev/loop-control": "loop"}[path]
    try:
        # A container may have another file in its place, which also opens.
        found = Path(path).stat()
        if not stat.S_ISCHR(found.st_mode) or found.st_rdev != os.makedev(*_DEVICES[path]):
            raise OSError(errno.ENODEV, "it is another device or file")
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        remedy = f"`modprobe {module}`; in a container, pass the device: --device {path}"
        return Check(path, False, os.strerror(error.errno or 0), remedy, required=True)
    return Check(path, True, "opens", required=True)


def _mount_api() -> Check:
    """Check for mount_setattr(2), available since Linux 5.12. The call gets a null argument of size
    zero: a kernel that has it fails with an error other than ENOSYS."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(MOUNT_SETATTR_SYSCALL, -1, None, 0, None, 0)
    known = ctypes.get_errno() != errno.ENOSYS
    return _kernel_feature("mount API", "mount_setattr(2)", "5.12", known)


def _loop_configure() -> Check:
    """Check for LOOP_CONFIGURE, available since Linux 5.8. The call gets a bad address on any loop
    device: a kernel that has it fails with EFAULT (`lo_ioctl` copies the argument first).

    If no loop device exists yet, the check passes, and the first cell creates one.
    """
    for node in sorted(Path("/dev").glob("loop[0-9]*")):
        try:
            loop = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.ioctl(loop, LOOP_CONFIGURE, 0)
        except OSError as error:
            has_it = error.errno == errno.EFAULT
            return _kernel_feature("loop devices", "LOOP_CONFIGURE", "5.8", has_it)
        finally:
            os.close(loop)
    return Check("loop devices", True, "none exists yet; the first cell makes one", required=True)


def _kernel_feature(name: str, feature: str, since: str, known: bool) -> Check:
    release = os.uname().release
    if known:
        return Check(name, True, f"Linux {release} has {feature}", required=True)
    remedy = f"boot Linux {since} or later"
    return Check(name, False, f"Linux {release} lacks {feature}", remedy, required=True)


def _base() -> Check:
    try:
        return Check("mount base", True, str(base_directory()), required=True)
    except HostError as error:
        return Check("mount base", False, error.what, error.remedy or "", required=True)


def _binary(name: str, path: Path | None) -> Check:
    if path is None:
        return Check(name, False, "not found", "run `make setup`", required=True)
    return Check(name, True, str(path), required=True)


def front_end(server: Path) -> tuple[FrontEnd, str]:
    """Return the front end through which the kernel would reach recorded disks, and why it is not
    ublk."""
    try:
        ended = subprocess.run(
            [server, "front-end"], check=True, capture_output=True, text=True, timeout=10
        )
        told = json.loads(ended.stdout)
        return "ublk" if told["front_end"] == "ublk" else FUSE, str(told["because"] or "")
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return FUSE, f"{server} did not report its front end: {error}"


def _front_end(name: FrontEnd, because: str) -> Check:
    if name == "ublk":
        return Check("front end", True, "ublk: a block device of its own for each recorded disk")
    absent = "/dev/ublk-control: No such file" in because
    hint = " (`modprobe ublk_drv`, Linux 6.5 or later)" if absent else ""
    return Check("front end", True, f"FUSE and loop devices; not ublk: {because}{hint}")


def _file_system(name: str, mkfs: str) -> Check:
    if tool(mkfs) is None:
        return Check(name, False, f"{mkfs} is missing", f"`{install_command([mkfs])}`")
    if not kernel_has(name):
        remedy = "`--lab vm` runs it in a virtual machine"
        return Check(name, False, f"not in Linux {os.uname().release}", remedy)
    return Check(name, True, f"in the kernel, {tool(mkfs)}")


def _tool(name: str) -> Check:
    found = tool(name)
    if found is None:
        return Check(name, False, "not installed", f"`{install_command([name])}`")
    return Check(name, True, str(found))


def _space(folder: Path) -> Check:
    folder = existing(folder)
    free = shutil.disk_usage(folder).free
    remedy = "" if free >= 4 << 30 else "free some, or choose another folder with --out"
    return Check("free space", not remedy, f"{free / 1e9:.1f} GB at {folder}", remedy)


def _memory() -> Check:
    available = memory_bytes("MemAvailable")
    remedy = "" if available >= 1 << 30 else "close other programs; a cell needs about 1 GiB"
    return Check("free memory", not remedy, f"{available / 1e9:.1f} GB", remedy)
