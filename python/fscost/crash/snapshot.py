"""The files and folders of a mounted file system, in short."""

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Any

_SECTOR_BYTES = 512
_MOST_BYTES = 16 << 20
"""Content of a snapshot. The rest of the files is not checked."""
_MOST_FILES = 4000
_GET_VERSION = 0x80087601
"""FS_IOC_GETVERSION of include/uapi/linux/fs.h: the generation of an inode."""
ZERO = 0
"""Stands for a sector of zeros."""


def snapshot(root: Path) -> dict[str, Any]:
    """Return each file, `{key: [path, [digest of each sector]]}`, with None in place of the digests
    if a read fails, and each folder, `{key: {name: key}}`. A key is an inode and its generation,
    because numbers are used again. Digests are Python's: the same only with the same
    PYTHONHASHSEED."""
    files: dict[str, list[Any]] = {}
    folders: dict[str, dict[str, str]] = {}
    left_bytes = _MOST_BYTES
    waiting = [(_key(root, root.lstat()), root)]
    while waiting and len(files) < _MOST_FILES:
        folder_key, folder = waiting.pop()
        here: dict[str, str] = {}
        for name in _names(folder):
            path = folder / name
            try:
                about = path.lstat()
                key = here[name] = _key(path, about)
                if stat.S_ISDIR(about.st_mode):
                    waiting.append((key, path))
                elif stat.S_ISREG(about.st_mode) and key not in files:
                    left_bytes -= about.st_size
                    if left_bytes >= 0:
                        files[key] = [str(path.relative_to(root)), None]
                        files[key][1] = _sectors(path.read_bytes())
            except OSError:
                continue
        folders[folder_key] = here
    return {"files": files, "folders": folders}


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _key(path: Path, about: os.stat_result) -> str:
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        return f"{about.st_ino}:"
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        generation = fcntl.ioctl(descriptor, _GET_VERSION, bytes(8))
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
        generation = bytes(8)  # this file system has none
    finally:
        os.close(descriptor)
    return f"{about.st_ino}:{int.from_bytes(generation[:4], 'little')}"


def _sectors(data: bytes) -> list[int]:
    pieces = (data[at : at + _SECTOR_BYTES] for at in range(0, len(data), _SECTOR_BYTES))
    return [hash(piece) if piece.strip(b"\0") else ZERO for piece in pieces]
