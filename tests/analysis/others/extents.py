"""Extents of every file below this folder according to the kernel: `extents.py`, in a guest. It
uses FIEMAP where the file system supports it, else FIBMAP.

Standard output has a line for each extent that holds data for a reader: the inode, the extent's
bytes on the disk, the path. It also has each path's kind and inode.
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

FIEMAP, FIBMAP, FIGETBSZ = 0xC020660B, 1, 2  # linux/fs.h, linux/fiemap.h
SYNC, LAST = 1, 1
ELSEWHERE = 0x2 | 0x4 | 0x8 | 0x200 | 0x800
"""Flags of extents without a usable place: unknown, delayed allocation, encoded, in the metadata,
unwritten."""
MOST = 16
"""Maximum extents per call: Python takes 1024 bytes of arguments."""


def extents(descriptor: int) -> Iterator[tuple[int, int]]:
    start = flags = 0
    while not flags & LAST:
        asked = struct.pack("=QQLLLL", start, (1 << 63) - start, SYNC, 0, MOST, 0)
        answer = fcntl.ioctl(descriptor, FIEMAP, asked.ljust(32 + 56 * MOST, b"\0"))
        [count] = struct.unpack_from("=L", answer, 20)
        if count == 0:
            return
        for number in range(count):
            logical, physical, length, *_, flags = struct.unpack_from(
                "=QQQQQL", answer, 32 + 56 * number
            )
            start = logical + length
            if not flags & ELSEWHERE:
                yield physical, length


def blocks(descriptor: int) -> Iterator[tuple[int, int]]:
    [size] = struct.unpack("=i", fcntl.ioctl(descriptor, FIGETBSZ, struct.pack("=i", 0)))
    run = (0, 0)
    for block in range(-(-os.fstat(descriptor).st_size // size)):
        [physical] = struct.unpack("=i", fcntl.ioctl(descriptor, FIBMAP, struct.pack("=i", block)))
        if physical and physical == sum(run):
            run = (run[0], run[1] + 1)
            continue
        yield run[0] * size, run[1] * size
        run = (physical, int(physical > 0))
    yield run[0] * size, run[1] * size


def main() -> None:
    for folder, folders, names in os.walk("."):
        for path in (Path(folder, name) for name in folders + names):
            kind = "symlink" if path.is_symlink() else "directory" if path.is_dir() else "file_data"
            print(f"KIND\t{kind}\t{os.lstat(path).st_ino}\t/{path}")
            if kind != "file_data":
                continue
            descriptor = os.open(path, os.O_RDONLY)
            try:
                found = list(extents(descriptor))
            except OSError:
                found = list(blocks(descriptor))
            for physical, length in filter(all, found):
                print(f"EXTENT\t{os.fstat(descriptor).st_ino}\t{physical}\t{length}\t/{path}")
            os.close(descriptor)


if __name__ == "__main__":
    main()
