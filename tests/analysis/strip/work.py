"""The workload whose secrets `test_strip.py` looks for: its steps, and `python3 work.py STEP` to
run one."""

import os
import subprocess
import sys
from pathlib import Path

CONTENTS = (
    "secret-inline",
    "secret-tail",
    "secret-large",
    "secret-zipped",
    "secret-xattr",
    "secret-remote",
    "secret-synced",
    "secret-logged",
)
NAMES = (
    "secret-file",
    "secret-folder",
    "secret-target",
    "secret-lasting",
    "secret-gone",
    "secret-entry",
    "secret-renamed",
)
STEPS = ("make", "change")


def synced(path: str, content: bytes) -> None:
    """Write a file and fsync it, so that journals and logs mention it."""
    with Path(path).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def make() -> None:
    Path("secret-folder-1").mkdir()
    Path("secret-folder-1/secret-file-inline").write_text("short: secret-inline\n")
    Path("secret-file-tail").write_bytes(b"z" * 9000 + b" secret-tail\n")
    Path("secret-file-large").write_bytes(
        b"".join(b"secret-large %08d; " % n + os.urandom(64) for n in range(20000))
    )
    Path("secret-file-zipped").write_bytes(b"secret-zipped " * 20000)
    for number in range(400):
        Path(f"secret-folder-1/secret-entry-{number:04}-{'x' * (number % 40)}").touch()
    # A short value is stored in the inode; ext's other values fill at most one block of 1 KiB. If a
    # longer value follows soon, no journal has the short one in the inode.
    os.setxattr("secret-folder-1/secret-file-inline", "user.kept-name-0", b"secret-xattr")
    for number, value in enumerate((b"secret-xattr", b"secret-xattr" * 50)):
        os.setxattr("secret-file-tail", f"user.kept-name-{number}", value)
    Path("secret-lasting-link").symlink_to("secret-target-short")
    Path("secret-lasting-long").symlink_to(f"secret-folder-1/secret-target-{0:0200}")
    Path("secret-lasting-longest").symlink_to(
        "secret-target-longest/" + "/".join(f"secret-target-{n:090}" for n in range(9))
    )
    subprocess.run(["sync", "-f", "."], check=True)
    synced("secret-file-synced", b"secret-synced " * 400)
    synced("secret-folder-1/secret-file-logged", b"secret-logged")
    Path("secret-folder-1/secret-lasting-logged").symlink_to("secret-target-logged")
    Path("secret-file-synced").rename("secret-renamed-synced")
    synced("secret-folder-1/secret-file-other", b"secret-logged too")
    folder = os.open("secret-folder-1", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def change() -> None:
    entries = {path.name[:17]: path for path in Path("secret-folder-1").iterdir()}
    for number in range(1, 6):
        entries[f"secret-entry-{number:04}"].rename(f"secret-folder-1/secret-gone-{number}")
    for number in range(200, 300):
        entries[f"secret-entry-{number:04}"].unlink()
    Path("secret-lasting-link").unlink()
    Path("secret-folder-2").mkdir()
    Path("secret-file-tail").rename("secret-folder-2/secret-file-moved")
    for name in ("secret-folder-2/secret-file-moved", "secret-file-large"):
        Path(name).read_bytes()


def remote() -> None:
    """Set a value too large for an inode's block, for file systems that allow one."""
    Path("secret-file-remote").touch()
    os.setxattr("secret-file-remote", "user.kept-name", b"secret-remote" * 900)


if __name__ == "__main__":
    {"make": make, "change": change, "remote": remote}[sys.argv[1]]()
