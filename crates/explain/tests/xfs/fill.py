# ruff: noqa: INP001
"""What the tests write: `fill.py create` makes, `fill.py again` changes."""

import fcntl
import os
import random
import sys
from pathlib import Path

FICLONE = 0x40049409


def create() -> None:
    for directory in ("d", "e", "many"):
        Path(directory).mkdir()
    for number in range(1, 121):
        Path(f"d/f{number}").write_bytes(random.randbytes(number * 700))
    Path("e/big").write_bytes(random.randbytes(3_000_000))
    Path("e/link").symlink_to("x" * 900)
    for number in range(2000):
        Path(f"e/with-a-long-name-{number}").touch()
    # Every second block: an extent tree.
    with Path("e/holes").open("wb") as file:
        for number in range(1, 401):
            file.seek(number * 2 * 16384)
            file.write(random.randbytes(4096))
    for bytes_count in (500, 900, 2000, 20000):
        os.setxattr("d/f1", f"user.{bytes_count}", b"y" * bytes_count)
    for number in range(150):
        os.setxattr("d/f2", f"user.{number}", b"z" * 300)
    clone("e/big", "e/same")
    # Names in a directory that is first in its inode, then a block, then several.
    for number in range(300):
        os.link("d/f3", f"many/{number}")


def again() -> None:
    for number in range(10, 20):
        Path(f"d/f{number}").unlink()
    for number in range(2000):
        if str(number).startswith("1"):
            Path(f"e/with-a-long-name-{number}").unlink()
    Path("d/new").write_bytes(random.randbytes(200_000))
    for path in ("e/big", "e/same"):
        with Path(path).open("r+b") as file:
            file.seek(9 * 65536)
            file.write(random.randbytes(12288))
    for number in range(20):
        Path(f"e/more{number}").write_bytes(random.randbytes(9000))
    os.removexattr("d/f1", "user.20000")
    for number in range(250):
        Path(f"many/{number}").unlink()
    # Extents of the tree move back into the inode.
    os.truncate("e/holes", 8 * 32768)


def clone(source: str, to: str) -> None:
    """Share the blocks; copy where the file system cannot."""
    with Path(source).open("rb") as old, Path(to).open("wb") as new:
        try:
            fcntl.ioctl(new, FICLONE, old.fileno())
        except OSError:
            new.write(old.read())


if __name__ == "__main__":
    random.seed(1)
    {"create": create, "again": again}[sys.argv[1]]()
