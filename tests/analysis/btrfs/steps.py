"""Steps that the tests run on a btrfs: `steps.py PHASE`, in its root. Every 512 bytes of every file
name the file and the offset."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

FILES = 12


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


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def make(rng: random.Random) -> None:
    run("btrfs", "subvolume", "create", "sub")
    for folder in ("d0", "d1", "d2", "d3", "d4", "sub/d"):
        Path(folder).mkdir()
        for file in range(FILES):
            write(f"{folder}/f{file}", rng.randrange(1, 40000), 1, sync=file == 5)
    Path("wide").mkdir()
    for file in range(200):
        write(
            f"wide/a-name-that-is-rather-long-so-that-the-leaves-fill-{file:05}",
            rng.choice((40, 700, 5000)),
            1,
        )
    write("big", 3 << 20, 1)
    for piece in range(100):
        write("holes", 4096, 1, start=piece * 16384, sync=piece % 25 == 0)
    for link in range(10):
        Path(f"d1/link{link}").symlink_to("x" * 200)
        os.setxattr(f"d2/f{link}", "user.large", os.urandom(900))
    Path("d4/second-name").hardlink_to("d3/f1")
    Path("d3/third-name").hardlink_to("d3/f1")
    Path("nocow").touch()
    run("chattr", "+C", "nocow")
    write("nocow", 1 << 20, 1)
    run("fallocate", "-l", "300000", "reserved")
    run("sync", "-f", ".")
    run("btrfs", "subvolume", "snapshot", "sub", "snap")
    run("cp", "--reflink=always", "big", "clone")


def change(rng: random.Random) -> None:
    Path("d2").rename("renamed")
    run("sync", "-f", ".")
    for folder in ("d0", "d1", "renamed", "snap/d"):
        for file in range(6):
            write(f"{folder}/f{file}", rng.randrange(1, 60000), 2, sync=file == 2)
    for file in range(6):
        write(f"d3/f{file + 6}", 8192, 2, start=4096 * rng.randrange(8))
        Path(f"d4/f{file}").unlink()
        write("nocow", 8192, 2, start=rng.randrange(200) * 4096, sync=file == 1)
    Path("d3/f1").unlink()
    write("big", 1 << 20, 2, start=1 << 20)
    write("clone", 65536, 2, start=1 << 18)
    write("reserved", 65536, 2, start=1 << 16)
    os.truncate("holes", 40 * 16384)
    for file in range(0, 200, 2):
        Path(f"wide/a-name-that-is-rather-long-so-that-the-leaves-fill-{file:05}").unlink()
        write(f"wide/{file}", 3000, 2)
    run("btrfs", "filesystem", "defragment", "-r", "d0")
    run("btrfs", "subvolume", "snapshot", "-r", "sub", "sent")
    Path("received").mkdir()
    subprocess.run("btrfs send -q sent | btrfs receive -q received", shell=True, check=True)  # noqa: S602 two programs, one pipe
    write("d3/logged", 30000, 2, sync=True)
    write("d3/logged", 30000, 3, start=60000, sync=True)


def move(rng: random.Random) -> None:
    """Rewrite everything by a balance while files change."""
    run("btrfs", "balance", "start", "--full-balance", ".")
    for file in range(6):
        write(f"d3/f{file}", rng.randrange(1, 30000), 4, sync=True)
    run("btrfs", "subvolume", "delete", "snap")
    run("btrfs", "filesystem", "sync", ".")


def devices() -> dict[int, str]:
    """Return each member's device."""
    text = subprocess.run(
        ["btrfs", "filesystem", "show", "."], check=True, capture_output=True, text=True
    ).stdout
    return {int(devid): path for devid, path in re.findall(r"devid\s+(\d+) .* path (\S+)", text)}


def leave(rng: random.Random) -> None:
    """Remove the third disk, add it again with another number, remove it again and let it replace
    the second disk, which is then added anew."""
    first = devices()
    run("btrfs", "device", "remove", first[3], ".")
    for file in range(20):
        write(f"d0/left{file}", rng.randrange(1, 90000), 5, sync=file % 5 == 0)
    run("btrfs", "device", "add", "-f", first[3], ".")
    run("btrfs", "balance", "start", "--full-balance", ".")
    for file in range(20):
        write(f"d1/joined{file}", rng.randrange(1, 90000), 5, sync=file % 5 == 0)
    run("btrfs", "device", "remove", first[3], ".")
    run("btrfs", "replace", "start", "-B", "-f", "2", first[3], ".")
    for file in range(20):
        write(f"d3/replaced{file}", rng.randrange(1, 90000), 5, sync=file % 5 == 0)
    run("btrfs", "device", "add", "-f", first[2], ".")
    for file in range(20):
        write(f"d3/again{file}", rng.randrange(1, 90000), 5, sync=file % 5 == 0)
    write("last", 30 << 20, 5)


if __name__ == "__main__":
    {"make": make, "change": change, "move": move, "leave": leave}[sys.argv[1]](
        random.Random(sys.argv[1])
    )
