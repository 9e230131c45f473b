"""Sweeps: choices in braces, designs, limits on their number, and combinations that are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost.results import load

Run = Callable[..., Any]
FOUR = "ext4 -b {1024,4096} -O {,^has_journal} -o commit={5,30},{relatime,noatime}"


def test_a_sweep_is_counted_before_it_starts(compare: Run, tmp_path: Path) -> None:
    found = compare("--on", FOUR, "--on", "xfs", "-r", "2", "-o", "out")
    first, second = found.stderr.splitlines()[:2]
    assert first == f"true on 16 combinations of {FOUR} (2 × 2 × 2 × 2), xfs"
    assert second.startswith("34 cells, seed 0; expected time ")
    profiles = load(tmp_path / "out").manifest.profiles
    assert profiles[1]["name"] == "ext4 -b 1024 -o commit=5,noatime"
    assert profiles[1]["sweep"] == FOUR
    assert profiles[1]["levels"] == [
        ["-b", "-b 1024"],
        ["^has_journal", "without ^has_journal"],
        ["commit", "commit=5"],
        ["relatime|noatime", "noatime"],
    ]
    assert profiles[16]["levels"] == []


def test_more_cells_than_allowed_are_refused_before_anything_is_made(
    compare: Run, tmp_path: Path
) -> None:
    options = ("--on", FOUR, "--max-cells", "100", "-o", "out")
    said = compare(*options, check=(2,)).stderr
    assert "160 cells, more than --max-cells 100: 16 in each repetition" in said
    assert not (tmp_path / "out").exists()
    lists = ("-L", "a", "1,2", "-r", "5")
    said = compare(*options, *lists, command=("echo", "{a}"), check=(2,)).stderr
    assert "160 cells" in said
    compare(*options, "--design", "screening", "-r", "2")
    assert len(load(tmp_path / "out").manifest.cells) == 16


def test_a_choice_of_a_workload_makes_runs(fscost: Run, tmp_path: Path) -> None:
    options = ("--lab", "fake", "-r", "1", "--on", "ext4", "--workload", "sqlite")
    setting = ("--set", "journal={wal,delete}")
    said = fscost("compare", *options, *setting, "--set", "transactions=5", "-o", "out").stderr
    assert "2 runs, at most 2 cells" in said
    for mode in ("wal", "delete"):
        chosen = load(tmp_path / f"out/journal-{mode}").manifest.workload["options"]
        assert ["journal", mode] in chosen
    wrong = ("--set", "journal={wal,both}", "-o", "wrong")
    assert "both" in fscost("compare", *options, *wrong, check=(2,)).stderr
    assert not (tmp_path / "wrong").exists(), "all runs are validated before the first"
    again = ("--max-cells", "1", "-o", "again")
    assert "--max-cells" in fscost("compare", *options, *setting, *again, check=(2,)).stderr


@pytest.mark.parametrize(
    ("lab", "kind"), [("fake:fail_mkfs=", "mkfs"), ("fake:fail_mount=", "mount")]
)
def test_a_refused_combination_is_skipped_in_the_tools_words(
    compare: Run, tmp_path: Path, lab: str, kind: str
) -> None:
    refused = ["ext4 -b 1024 -o data=journal", "ext4 -b 1024"]
    lab = ",".join([f"{lab}{refused[0]}", f"{lab.removeprefix('fake:')}{refused[1]}"])
    found = compare(
        "--on", "ext4 -b {1024,4096} -o {,data=journal}", "-r", "2", "-o", "out", lab=lab
    )
    words = "mkfs refused: invalid option" if kind == "mkfs" else "ext4: Bad value for 'data'"
    because = f"because {kind} refuses it: {words}"
    assert found.stdout.replace("\n  ", " ").count(because) == 1
    assert found.stderr.count(because) == 1
    manifest = load(tmp_path / "out").manifest
    assert sorted(entry.profile for entry in manifest.skipped) == sorted(refused)
    assert {entry.because for entry in manifest.skipped} == {because.removeprefix("because ")}
    assert [cell.status for cell in manifest.cells] == ["done"] * 4
    assert not [each for each in (tmp_path / "out/cells").iterdir() if "1024" in each.name]


def test_a_profile_that_was_named_alone_fails_as_before(compare: Run, tmp_path: Path) -> None:
    compare(
        "--on", "ext4", "--on", "xfs", "-r", "1", "-o", "out", lab="fake:fail_mkfs=xfs", check=(1,)
    )
    assert [cell.profile for cell in load(tmp_path / "out").manifest.failed] == ["xfs"]
