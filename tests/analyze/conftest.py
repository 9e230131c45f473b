"""A small recording of ext4, made without root: what mkfs and debugfs changed in a plain file, as a dm-log-writes log."""

import os
import struct
import subprocess
from pathlib import Path

import pytest

from fscost import capture

SECTOR = 512
BLOCK = 4096
MARK = 8
IMAGE_BLOCKS = 4096
CONTENT = bytes(range(1, 251)) * 100
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
LOG_MAGIC = 0x6A736677736872


def changes(before: bytes, after: bytes) -> list[tuple[int, bytes]]:
    """Each block that is different, with its offset."""
    offsets = range(0, len(after), BLOCK)
    return [(o, after[o : o + BLOCK]) for o in offsets if before[o : o + BLOCK] != after[o : o + BLOCK]]


def entry(offset: int, content: bytes, flags: int = 0, text: bytes = b"") -> bytes:
    head = struct.pack("<QQQQ", offset // SECTOR, len(content) // SECTOR, flags, len(text)) + text
    return head.ljust(SECTOR, b"\0") + content


def log_of(phases: dict[str, list[tuple[int, bytes]]]) -> bytes:
    entries = [e for name, writes in phases.items() for e in (entry(0, b"", MARK, name.encode()), *(entry(*write) for write in writes))]
    return struct.pack("<QQQI", LOG_MAGIC, 1, len(entries), SECTOR).ljust(SECTOR, b"\0") + b"".join(entries)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Phases mkfs, mount (empty), `work` (a file `/d/hello.txt` of CONTENT) and `again` (nothing), on an ext4 without a journal in use."""
    image, content = tmp_path / "image", tmp_path / "content"
    environment = {**os.environ, "PATH": PATH}
    image.write_bytes(bytes(IMAGE_BLOCKS * BLOCK))
    content.write_bytes(CONTENT)
    options = ["-q", "-F", "-b", str(BLOCK), "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard"]
    subprocess.run(["mkfs.ext4", *options, str(image)], env=environment, check=True, capture_output=True)
    made = image.read_bytes()
    commands = f"mkdir /d\ncd /d\nwrite {content} hello.txt\n"
    subprocess.run(["debugfs", "-w", "-f", "-", str(image)], env=environment, input=commands.encode(), check=True, capture_output=True)
    # A log does not say how large the disk was: the last block does.
    end = (len(made) - BLOCK, made[-BLOCK:])
    phases = {"mkfs": [*changes(bytes(len(made)), made), end], "mount": [], "work": changes(made, image.read_bytes()), "again": []}
    log, out = tmp_path / "log", tmp_path / "recording"
    log.write_bytes(log_of(phases))
    capture.import_dm_log_writes(log, out)
    return out
