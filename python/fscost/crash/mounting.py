"""Mounts by system call. mount(8) takes several milliseconds to start: as long as all the rest.

Only the standard library is imported here: a guest loads this over a slow share.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
from collections.abc import Iterator

_FLAGS = {
    "ro": 1,
    "nosuid": 2,
    "nodev": 4,
    "noexec": 8,
    "sync": 16,
    "dirsync": 128,
    "noatime": 1 << 10,
    "nodiratime": 1 << 11,
    "silent": 1 << 15,
    "relatime": 1 << 21,
    "strictatime": 1 << 24,
    "lazytime": 1 << 25,
}
"""Options of every file system, which are bits for mount(2) (include/uapi/linux/mount.h)."""
_CLEARED = {
    "rw": "ro",
    "suid": "nosuid",
    "dev": "nodev",
    "exec": "noexec",
    "async": "sync",
    "atime": "noatime",
    "diratime": "nodiratime",
    "loud": "silent",
    "norelatime": "relatime",
    "nostrictatime": "strictatime",
    "nolazytime": "lazytime",
}
"""Options that take another one back."""
_OF_MOUNT = (
    *("auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev"),
    *("loop", "offset", "sizelimit", "encryption", "helper", "uhelper", "comment", "defaults"),
    *("iversion", "noiversion", "mand", "nomand", "remount", "bind", "rbind", "move"),
    *("context", "fscontext", "defcontext", "rootcontext"),
)
"""Options of mount(8) that the kernel does not know, or not by this name."""
_OF_MOUNT_STARTS = ("x-", "X-", "verity.")
_READ_ONLY = (errno.EROFS, errno.EACCES)
_BIND = 4096
"""MS_BIND of include/uapi/linux/mount.h."""
_NEW_NAMESPACE = 0x20000
"""CLONE_NEWNS of include/uapi/linux/sched.h."""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of include/uapi/linux/prctl.h."""
_BTRFS_CONTROL = "/dev/btrfs-control"
_FORGET, _FORGET_BYTES = 0x50009405, 4096
"""BTRFS_IOC_FORGET_DEV and struct btrfs_ioctl_vol_args of include/uapi/linux/btrfs.h."""
_libc = ctypes.CDLL(None, use_errno=True)


def parsed(options: str) -> tuple[int, str] | None:
    """Return the flags and the data of mount(2) for these options, or None if they need
    mount(8)."""
    flags, data = 0, []
    for option in filter(None, options.split(",")):
        name = option.partition("=")[0]
        if name in _OF_MOUNT or name.startswith(_OF_MOUNT_STARTS) or '"' in option:
            return None
        if option in _FLAGS:
            flags |= _FLAGS[option]
        elif option in _CLEARED:
            flags &= ~_FLAGS[_CLEARED[option]]
        else:
            data.append(option)
    return flags, ",".join(data)


def mount(device: str, folder: str, type_: str, options: str) -> str | None:
    """Mount a device. Return why not, or an empty text if it worked; None if that takes mount(8):
    because of an option, or because the kernel would mount it read-only, which mount(8) tries."""
    if (found := parsed(options)) is None:
        return None
    flags, data = found
    source = os.fsencode(device)
    where, kind, text = os.fsencode(folder), type_.encode(), os.fsencode(data)
    if _libc.mount(source, where, kind, ctypes.c_ulong(flags), text or None) == 0:
        return ""
    number = ctypes.get_errno()
    return None if number in _READ_ONLY else os.strerror(number)


def unmount(folder: str) -> str:
    """Unmount a folder. Return why not, or an empty text if it worked."""
    if _libc.umount2(os.fsencode(folder), 0) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


@contextlib.contextmanager
def bound(folder: str | os.PathLike[str], place: str) -> Iterator[None]:
    """Let a folder also be at another place, which may hide what is there."""
    source, target = os.fsencode(folder), os.fsencode(place)
    if _libc.mount(source, target, None, ctypes.c_ulong(_BIND), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)
    try:
        yield
    finally:
        unmount(place)


def forget() -> None:
    """Let btrfs forget all disks that are not mounted, as `btrfs device scan --forget` does."""
    with contextlib.suppress(OSError):
        control = os.open(_BTRFS_CONTROL, os.O_RDWR)
        try:
            fcntl.ioctl(control, _FORGET, bytearray(_FORGET_BYTES))
        finally:
            os.close(control)


def unshare() -> None:
    """Give this process a mount namespace of its own."""
    if _libc.unshare(_NEW_NAMESPACE) != 0:
        raise OSError(ctypes.get_errno(), "unshare(2) of the mount namespace")


def end_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends (prctl(2))."""
    _libc.prctl(_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
