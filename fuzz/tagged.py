"""What the seeds of `others` do, in a guest: `tagged.py make|change|remove`, in the root of the
file system. Every 512 bytes of a file name it, and where in it
they are (`crates/explain/tests/others.rs`)."""  # noqa: INP001 a script

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SECTOR = 512
NAME = "file-with-a-name-of-some-length"


def write(path: str, start: int, length: int, *, is_synced: bool = False) -> None:
    """From a byte on; tags begin where sectors do."""
    first = start - start % SECTOR
    tags = (
        f"TAG /{path} {at} 1 ".encode().ljust(SECTOR, b".")
        for at in range(first, start + length, SECTOR)
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(descriptor, b"".join(tags)[start - first :][:length], start)
    if is_synced:
        os.fsync(descriptor)
    os.close(descriptor)


def make() -> None:
    for folder in ("d", "e"):
        Path(folder).mkdir()
    for number in range(1, 41):
        write(f"d/{NAME}-{number}", 0, number * 150)
    for number in range(1, 61):
        write("e/holes", number * 3072, 1024)
    with suppress(PermissionError):  # FAT has none
        Path("e/link").symlink_to("l" * 200)
    subprocess.run(["sync", "-f", "."], check=True)


def change() -> None:
    for number in range(12):
        write("log", number * 900, 900, is_synced=True)
    Path(f"d/{NAME}-2").rename("e/moved")
    for path in Path("d").glob(f"{NAME}-1*"):
        path.unlink()
    os.truncate("e/holes", 20 << 10)
    with suppress(PermissionError):
        Path("e/moved").chmod(0o600)
    Path("f").mkdir()
    for number in range(1, 31):
        write(f"f/{number}", 0, 3)


def remove() -> None:
    for folder in ("f", "d"):
        for path in Path(folder).iterdir():
            path.read_bytes()
        shutil.rmtree(folder)


if __name__ == "__main__":
    {"make": make, "change": change, "remove": remove}[sys.argv[1]]()
