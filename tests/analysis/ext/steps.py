"""Steps that the tests run on a file system: `steps.py PHASE`, in its root. Every 512 bytes of
every file name the file and the offset."""

import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def tagged(path: str, start: int, length: int, number: int) -> bytes:
    sectors = (
        f"TAG {path} {at} {number} ".encode().ljust(512, b".")
        for at in range(start, start + length + 511, 512)
    )
    return b"".join(sectors)[:length]


def write(path: str, length: int, number: int, start: int = 0, sync: bool = False) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(descriptor, tagged(path, start, length, number), start)
    if sync:
        os.fsync(descriptor)
    os.close(descriptor)


def churn() -> None:
    """Reuse the blocks of removed directories for other directories with other inodes, before any
    of them is written home.

    An fsync commits; a sync would also write home.
    """
    parent = Path("churn")
    parent.mkdir()
    for generation in range(3):
        for folder in range(10):
            path = parent / f"{generation}-{folder}"
            path.mkdir()
            for file in range(30):
                (path / f"another-name-that-is-rather-long-{file:05}").touch()
        commit(parent)
        if generation < 2:
            for folder in range(10):
                shutil.rmtree(parent / f"{generation}-{folder}")
            commit(parent)
            for file in range(10 * 31):
                (parent / f"takes-inode-{generation}-{file}").touch()


def commit(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def make(rng: random.Random) -> None:
    for folder in range(8):
        Path(f"d{folder}").mkdir()
        for file in range(12):
            write(f"d{folder}/f{file}", rng.randrange(1, 30000), 1, sync=file == 5)
    Path("wide").mkdir()
    for file in range(500):
        write(
            f"wide/a-name-that-is-rather-long-so-that-the-directory-grows-{file:05}",
            rng.choice((40, 700, 5000)),
            1,
        )
    write("big", 3 << 20, 1)
    for piece in range(500):
        write("holes", 4096, 1, start=piece * 16384, sync=piece % 100 == 0)
    for link in range(10):
        Path(f"d1/link{link}").symlink_to("x" * 200)
        os.setxattr(f"d2/f{link}", "user.large", os.urandom(900))
    with suppress(OSError):  # too large without ea_inode
        os.setxattr("d2/f11", "user.huge", b"OWNER d2/f11 " * 3000)
    Path("d4/second-name").hardlink_to("d3/f1")
    churn()


def change(rng: random.Random) -> None:
    Path("d5").rename("renamed")
    subprocess.run(["sync", "-f", "."], check=True)
    for folder in ("d0", "d1", "renamed"):
        for file in range(6):
            write(f"{folder}/f{file}", rng.randrange(1, 60000), 2, sync=file == 2)
    for file in range(6):
        Path(f"d2/f{file}").unlink()
        write(f"d3/f{file + 6}", 8192, 2, start=4096 * rng.randrange(8))
    write("big", 1 << 20, 2, start=1 << 20)
    os.truncate("holes", 100 * 16384)
    for file in range(0, 500, 2):
        Path(f"wide/a-name-that-is-rather-long-so-that-the-directory-grows-{file:05}").unlink()
        write(f"wide/{file}", 3000, 2)


def replace(rng: random.Random) -> None:
    for file in range(0, 500, 2):
        Path(f"wide/{file}").unlink()
    Path("big").unlink()
    subprocess.run(["sync", "-f", "."], check=True)
    for folder in range(4):
        Path(f"new{folder}").mkdir()
        for file in range(40):
            write(f"new{folder}/f{file}", rng.randrange(1, 50000), 3, sync=file % 13 == 0)
    for file in range(12):
        Path(f"d7/f{file}").unlink()
    Path("d7").rmdir()
    for file in range(12):
        path = Path(f"d6/f{file}")
        path.unlink()
        write(str(path), 6000, 3)


if __name__ == "__main__":
    {"make": make, "change": change, "replace": replace}[sys.argv[1]](random.Random(sys.argv[1]))
