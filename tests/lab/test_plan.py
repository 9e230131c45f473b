"""The agent's plan for a profile."""

from pathlib import Path

import pytest

from fscost.lab.base import LabOptions
from fscost.lab.cell import plan
from fscost.matrix import Cell
from fscost.profile import plan_format, resolve
from fscost.workload import command


@pytest.mark.parametrize(
    ("spelled", "commit_s"),
    [
        ("ext4", None),
        ("ext4 -o commit=30", 30),
        ("ext4 -o commit=30,commit=7", 7),
        ("btrfs -o commit=0", None),
        ("xfs", None),
    ],
)
def test_how_often_the_journal_is_committed(
    spelled: str, commit_s: int | None, tmp_path: Path
) -> None:
    cell = Cell(resolve(spelled), command("true"), 0, 1, 0)
    place = plan.Place(1, "/log", "/base", None, None, {})
    options = LabOptions(tmp_path, disk_size_bytes=1 << 30)
    formatted = plan_format(cell.profile, 1 << 30, 1)
    assert plan.build(cell, options, formatted, place)["commit_s"] == commit_s
