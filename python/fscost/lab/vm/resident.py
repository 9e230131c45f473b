"""Pinning of files that guests read in the host's page cache.

A guest's clock continues while the guest waits for a host file to be read from a disk, so its
behaviour would depend on the host. Dropping caches (/proc/sys/vm/drop_caches, as cells of the
native lab do) does not evict mapped pages.
"""

import contextlib
import mmap
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from fscost import files
from fscost.host import tool
from fscost.matrix import Cell

MOST_FILES = 64
"""Maximum number of files, because each mapping keeps a descriptor open."""
MOST_BYTES = 256 << 20
_LIBRARY = re.compile(r"^\s.*?(/\S+) \(0x", re.MULTILINE)


@contextmanager
def held(wanted: Iterable[Path]) -> Iterator[int]:
    """Hold as many of these files as fit, in order, until the block ends; yield their number."""
    with ExitStack() as stack:
        count, room = 0, MOST_BYTES
        for file in dict.fromkeys(wanted):
            if count == MOST_FILES:
                break
            with contextlib.suppress(OSError, ValueError):
                mapped = _mapped(file, room)
                stack.callback(mapped.close)
                count, room = count + 1, room - len(mapped)
        yield count


def read_by(cell: Cell, built: Mapping[str, Any]) -> list[Path]:
    """List the files that the guest of a cell with this plan reads: programs, then the workload's
    input."""
    commands = [*built["mkfs"], *built["after_mount"], *built["background"]]
    commands += [each["command"] for each in built["inspect"]]
    names = ("sh", *cell.workload.needs_tools, *(command[0] for command in commands))
    folder = cell.workload.input
    return [*programs(names), *(() if folder is None else sorted(folder.rglob("*")))]


@lru_cache
def programs(names: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the programs of these names, and the libraries that they load."""
    found = [path.resolve() for path in map(tool, names) if path is not None]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        # A script makes ldd return 1, but it still lists the others.
        listed = subprocess.run(["ldd", *found], capture_output=True, text=True, timeout=10)
        found += [Path(name).resolve() for name in _LIBRARY.findall(listed.stdout)]
    return tuple(dict.fromkeys(found))


def _mapped(file: Path, most_bytes: int) -> mmap.mmap:
    """Map a file. OSError or ValueError if it is not a regular file, is empty, or is larger than
    `most_bytes`."""
    with files.descriptor(file, os.O_RDONLY | os.O_NONBLOCK) as opened:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            raise ValueError(file)
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        return mmap.mmap(opened, 0, flags=flags, prot=mmap.PROT_READ)
