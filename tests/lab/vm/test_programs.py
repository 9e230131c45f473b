"""Programs that a guest finds on the host."""

import os
import tempfile
from pathlib import Path

import pytest

from fscost import profile
from fscost.lab.base import LabOptions
from fscost.lab.vm import VmLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

MIB = 1 << 20


@pytest.mark.guest
@pytest.mark.slow
def test_a_guest_finds_programs_where_the_caller_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Readable by QEMU's user, unlike `tmp_path`.
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        tool = Path(top, "fscost-own-tool")
        tool.write_text("#!/bin/sh\necho hello\n")
        tool.chmod(0o755)
        # A folder whose name is not UTF-8 must not spoil the order.
        monkeypatch.setenv(
            "PATH", os.pathsep.join((top, os.fsdecode(b"/\xff"), os.environ["PATH"]))
        )
        steps = (Step("work", f"{tool.name} > file && grep hello file"),)
        workload = Workload("mine", steps, disk_bytes=MIB, needs_tools=(tool.name,))
        cell = Cell(profile.resolve("ext2"), workload, repetition=0, seed=1, order=0)
        options = LabOptions(tmp_path / "cell", disk_size_bytes=64 * MIB)
        result = VmLab().run(cell, options, lambda _: None)
    assert result.status == "done", result.because
