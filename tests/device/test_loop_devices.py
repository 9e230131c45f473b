"""Tests' loop devices go away with the test process: a killed run leaves none behind."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

ATTACHES = """
import sys, time
from pathlib import Path
from tests.loop_devices import attached_file
with attached_file(Path(sys.argv[1])) as node:
    print(node, flush=True)
    time.sleep(600)
"""


def attached_to(image: Path) -> list[str]:
    listed = subprocess.check_output(["losetup", "--noheadings", "-O", "NAME", "-j", image])
    return listed.decode().split()


def test_a_killed_process_leaves_no_loop_device(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    command = [sys.executable, "-c", ATTACHES, image]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        node = process.stdout.readline().strip()
        assert attached_to(image) == [node]
        process.kill()
    until = time.monotonic() + 120
    while attached_to(image) and time.monotonic() < until:
        time.sleep(0.05)
    assert attached_to(image) == []
