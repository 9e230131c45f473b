"""A small recording of ext4, made without root: changes by mkfs and debugfs in a plain file, as a
dm-log-writes log."""

import os
import subprocess
from pathlib import Path

import pytest

from fscost import capture

from .made import BLOCK, changes, log_of

IMAGE_BLOCKS = 4096
CONTENT = bytes(range(1, 251)) * 100
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a recording with the phases mkfs, mount (empty), `work` (a file `/d/hello.txt` of
    CONTENT) and `again` (nothing), on an ext4 whose journal, if any, is unused."""
    image, content = tmp_path / "image", tmp_path / "content"
    environment = {**os.environ, "PATH": PATH}
    image.write_bytes(bytes(IMAGE_BLOCKS * BLOCK))
    content.write_bytes(CONTENT)
    options = [
        "-q",
        "-F",
        "-b",
        str(BLOCK),
        "-O",
        "^has_journal",
        "-E",
        "lazy_itable_init=0,nodiscard",
    ]
    subprocess.run(
        ["mkfs.ext4", *options, str(image)], env=environment, check=True, capture_output=True
    )
    made = image.read_bytes()
    commands = f"mkdir /d\ncd /d\nwrite {content} hello.txt\n"
    subprocess.run(
        ["debugfs", "-w", "-f", "-", str(image)],
        env=environment,
        input=commands.encode(),
        check=True,
        capture_output=True,
    )
    # A log does not record the disk's size: a write of the last block shows it.
    end = (len(made) - BLOCK, made[-BLOCK:])
    phases = {
        "mkfs": [*changes(bytes(len(made)), made), end],
        "mount": [],
        "work": changes(made, image.read_bytes()),
        "again": [],
    }
    log, out = tmp_path / "log", tmp_path / "recording"
    log.write_bytes(log_of(phases))
    capture.import_dm_log_writes(log, out)
    return out
