"""Data that the file system moved, told from the program's own writes."""

from pathlib import Path
from typing import Any

import pytest
from tests.analysis.ext.test_ext import MIB, record

from fscost.analyze import explain
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

FILL = """
import os
files = [os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in "ab"]
for number in range(64):
    for file in files:
        os.pwrite(file, os.urandom(16384), number * 16384)
        os.fsync(file)
"""
PROGRAM = """
import os, subprocess
file = os.open("a", os.O_RDWR)
for number in range(0, 64, 2):
    os.pwrite(file, os.urandom(16384), number * 16384)
# A commit with the new times, before the data.
other = os.open("c", os.O_RDWR | os.O_CREAT, 0o644)
os.fsync(other)
os.makedirs("d", exist_ok=True)
subprocess.run(["sync", "-f", "."], check=True)
# The same content, freed and written again.
file = os.open("b", os.O_RDWR)
content = os.pread(file, 1 << 20, 0)
os.ftruncate(file, 0)
os.pwrite(file, content, 0)
"""
STEPS = {"ext4": "e4defrag a", "btrfs": "btrfs filesystem defragment -t 32M a"}
FILE_BYTES = MIB


def data_of(rows: list[dict[str, Any]], phase: str, cause: str) -> dict[str | None, int]:
    """Return the bytes of file data with this cause in a phase, by path."""
    found: dict[str | None, int] = {}
    for row in rows:
        if (row["phase"], row["structure"], row["cause"]) == (phase, "file_data", cause):
            found[row["path"]] = found.get(row["path"], 0) + row["length"]
    return found


def explained(spelled: str, steps: tuple[Step, ...], tmp_path: Path) -> list[dict[str, Any]]:
    """Return the rows of a recording of these steps, which run scripts of this module."""
    (tmp_path / "input").mkdir()
    for name, script in (("fill", FILL), ("program", PROGRAM)):
        (tmp_path / "input" / f"{name}.py").write_text(script)
    work = Workload("mine", steps, disk_bytes=MIB, input=tmp_path / "input")
    recording = record(spelled, work, tmp_path / "cell", 1024)
    rows: list[dict[str, Any]] = explain(recording).table.to_pylist()
    return rows


FILLED = Step("fill", "python3 {input}/fill.py")


@pytest.mark.parametrize("spelled", ["ext4", "ext4 -b 1024", "btrfs", "btrfs -d dup"])
def test_defragmented_data_is_told_from_the_programs(spelled: str, tmp_path: Path) -> None:
    steps = (
        FILLED,
        Step("program", "python3 {input}/program.py"),
        Step("defragment", STEPS[spelled.split()[0]]),
    )
    rows = explained(spelled, steps, tmp_path)
    copies = 2 if "dup" in spelled else 1
    for phase in ("fill", "program"):
        assert data_of(rows, phase, "data").keys() >= {"/a", "/b"}
        assert not data_of(rows, phase, "defragmentation")
    assert data_of(rows, "defragment", "defragmentation") == {"/a": copies * FILE_BYTES}
    assert not data_of(rows, "defragment", "data")


@pytest.mark.parametrize("spelled", ["btrfs", "btrfs -o nodatacow"])
def test_data_that_a_balance_moves_is_told_from_the_programs(spelled: str, tmp_path: Path) -> None:
    steps = (
        FILLED,
        Step("program", "python3 {input}/program.py"),
        Step("balance", "btrfs balance start --full-balance ."),
        Step("again", "python3 {input}/program.py"),
    )
    rows = explained(spelled, steps, tmp_path)
    for phase in ("fill", "program", "again"):
        assert data_of(rows, phase, "data").keys() >= {"/a", "/b"}
        assert not data_of(rows, phase, "relocation")
    assert data_of(rows, "balance", "relocation") == {"/a": FILE_BYTES, "/b": FILE_BYTES}
    assert not data_of(rows, "balance", "data")
    trees = [row for row in rows if row["phase"] == "balance"]
    assert {row["cause"] for row in trees if row["structure"] == "relocation_tree"} == {
        "relocation"
    }
    files = {row["cause"] for row in trees if row["structure"] == "fs_tree"}
    assert "relocation" in files <= {"relocation", "unchanged"}
