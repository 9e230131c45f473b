"""Every form of the same run, compared with files that a person has reviewed.

After an intended change: FSCOST_UPDATE_GOLDEN=1 make test PYTEST=tests/cli/test_golden.py, then
review the difference.
"""

import csv
import json
import os
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from tests.reviewed import check, rounded

from fscost.lab.fake import FakeLab
from fscost.profile.model import Profile
from fscost.report import machine, markdown, terminal
from fscost.results import RunResults
from fscost.run import Local, RunSpec, StoppingRule, execute
from fscost.view.run import Choice, view
from fscost.workload.model import Step, Workload

PROFILES = (
    Profile("ext4", "ext4"),
    Profile("ext4 -o noatime", "ext4", mount_options="noatime"),
    Profile("ext4 -O ^has_journal", "ext4", ("-O", "^has_journal")),
    Profile("xfs", "xfs"),
    Profile("btrfs", "btrfs"),
    Profile("f2fs", "f2fs"),
)
WORKLOAD = Workload(
    "small-files",
    tuple(Step(name, name, name != "copy") for name in ("copy", "unpack", "unpack-over", "delete")),
    "unpack and delete",
)


def a_run(
    folder: Path, lab: FakeLab, profiles: tuple[Profile, ...] = PROFILES, repetitions: int = 4
) -> RunResults:
    spec = RunSpec(
        profiles, WORKLOAD, folder, seed=3, stopping=StoppingRule(min(3, repetitions), repetitions)
    )
    results = execute(spec, Local(lab), lock=f"fscost.test.{os.getpid()}.{folder.name}").results
    # Values that differ in each run have no place in a golden file.
    cells = [replace(cell, duration_s=1.5) for cell in results.manifest.cells]
    manifest = replace(
        results.manifest,
        cells=cells,
        elapsed_s=1.5 * len(cells),
        started_utc="2026-01-02T03:04:05Z",
        fscost_version="0.0",
    )
    return RunResults(Path("fscost-runs/golden"), manifest, results.samples)


@pytest.fixture
def results(tmp_path: Path) -> RunResults:
    """Return results of five file systems: one cannot run here, one fails, and the last is
    skipped."""
    lab = FakeLab(
        skip={"f2fs": "f2fs is not in this kernel: boot one that has it"},
        fail={"xfs": ("mkfs", "mkfs.xfs refused:\nunknown option -Q")},
        noise=0.02,
    )
    return a_run(tmp_path / "run", lab)


FORMS: dict[str, Callable[[RunResults], str]] = {
    "compare-80.txt": lambda run: terminal.text(view(run), str(run.folder), 80),
    "compare-100.txt": lambda run: terminal.text(view(run), str(run.folder), 100),
    "compare-60.txt": lambda run: terminal.text(view(run), str(run.folder), 60),
    "compare-140.txt": lambda run: terminal.text(view(run), str(run.folder), 140),
    "compare-wide.txt": lambda run: terminal.text(
        view(run, Choice(is_wide=True)), str(run.folder), 100
    ),
    "compare.md": lambda run: markdown.text(view(run), str(run.folder)),
    "compare.csv": lambda run: machine.csv_text(view(run)),
    "compare.json": lambda run: abridged(machine.json_text(run, view(run))),
}


SHOWN_PHASES = ("mkfs", "total")
SHOWN_METRICS = ("device_write_bytes", "fs_tree_write_bytes", "wall_s", "write_amplification")


def abridged(text: str) -> str:
    """Return JSON without the fields of profiles and workloads, which have their own tests, and
    with few rows. These rows show each kind of number and a missing value; the CSV contains the
    same and has all rows."""
    value = json.loads(text)
    for name in ("profiles", "workload"):
        assert value["run"].pop(name)
    value["rows"] = [
        row
        for row in value["rows"]
        if row["phase"] in SHOWN_PHASES and row["metric"] in SHOWN_METRICS
    ]
    return json.dumps(value, indent=1) + "\n"


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_as_it_was_looked_at(results: RunResults, name: str) -> None:
    text = FORMS[name](results)
    check(name, text)


def test_numbers_are_compared_to_twelve_digits() -> None:
    """Twice the same number from two builds of Python, and a number that differs."""
    assert rounded("a,8.608620515009605,4") == rounded("a,8.608620515009607,4")
    assert rounded("a,8.608620515,4") == "a,8.608620515,4"
    assert rounded("8.60862051501") != rounded("8.60862051502")
    assert rounded("-1.2345678901234e-05 1.25 x1.5") == "-1.23456789012e-05 1.25 x1.5"


def test_the_json_has_the_rows_of_the_csv(results: RunResults) -> None:
    rows = json.loads(machine.json_text(results, view(results)))["rows"]
    lines = list(csv.DictReader(StringIO(machine.csv_text(view(results)))))
    assert len(rows) == len(lines) > 500
    for row, line in zip(rows, lines, strict=True):
        assert list(row) == list(line)
        assert {
            name: ""
            if value is None
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
            for name, value in row.items()
        } == line


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int, count: int) -> None:
    profiles = tuple(
        Profile(f"ext4 -O ^has_journal,^metadata_csum{i} -o noatime,data=ordered", "ext4")
        for i in range(count)
    )
    text = terminal.text(
        view(a_run(tmp_path / "run", FakeLab(), profiles, repetitions=2)), "folder", width
    )
    # Text to be copied, such as a path or a command, is never folded.
    assert max(map(len, text.partition("\nResults: ")[0].splitlines())) <= width
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    for i in range(count):
        assert f"^metadata_csum{i}"[:8] in text


def test_a_large_number_is_folded_and_never_cut(results: RunResults) -> None:
    shown = view(results)
    big = [["ext4", "1023 MiB", "+99.9 %", "12,345,678,901", "123.45", "≈ 12.3 min", "≈ 12.3 min"]]
    text = terminal.text(
        replace(shown, summary=replace(shown.summary, rows=big, needed=None)), "folder", 60
    )
    assert max(map(len, text.partition("\nResults: ")[0].splitlines())) <= 60
    for cell in big[0]:
        assert cell in text


def test_the_json_is_one_object_of_the_promised_shape(results: RunResults) -> None:
    value = json.loads(machine.json_text(results, view(results)))
    assert set(value) == {
        "schema",
        "run",
        "rows",
        "power_cut",
        "headline",
        "why",
        "cautions",
        "findings",
        "skipped",
        "failed",
        "not_explained",
    }
    keys = [(row["profile"], row["phase"], row["metric"]) for row in value["rows"]]
    assert len(set(keys)) == len(keys)
    for row in value["rows"]:
        assert set(row) >= {"profile", "phase", "metric", "unit", "n", "median", "low", "high"}
        assert row["low"] <= row["median"] <= row["high"]
    assert {phase for _, phase, _ in keys} == {
        "mkfs",
        "mount",
        "copy",
        "unpack",
        "unpack-over",
        "delete",
        "total",
    }
    assert value["skipped"] == [
        {
            "cell": "f2fs.0",
            "profile": "f2fs",
            "because": "f2fs is not in this kernel: boot one that has it",
        }
    ]
    assert [(cell["cell"], cell["kind"]) for cell in value["failed"]] == [("xfs.0", "mkfs")]
    assert value["run"]["seed"] == 3
    assert value["run"]["order"][:3] == [cell.cell for cell in results.manifest.cells[:3]]


def test_the_total_is_the_sum_of_the_measured_phases(results: RunResults) -> None:
    rows = json.loads(machine.json_text(results, view(results)))["rows"]
    samples = results.samples.to_pylist()
    for cell in {row["cell"] for row in samples}:
        mine = [
            row
            for row in samples
            if row["cell"] == cell and row["metric"] == "device_write_bytes" and not row["disk"]
        ]
        total = next(row["value"] for row in mine if row["phase"] == "total")
        assert total == sum(
            row["value"] for row in mine if row["measured"] and row["phase"] != "total"
        )
    assert {row["measured"] for row in rows if row["phase"] == "total"} == {True}


def test_one_repetition_shows_no_difference(tmp_path: Path) -> None:
    results = a_run(tmp_path / "run", FakeLab(), repetitions=1)
    text = terminal.text(view(results), "folder", 120)
    assert "One repetition, so no difference can be reported." in text
    assert "less" not in text
    assert "more" not in text.replace("or more", "")


def test_without_the_baseline_there_are_no_ratios_and_it_says_so(tmp_path: Path) -> None:
    results = a_run(tmp_path / "run", FakeLab(fail={"ext4": ("mkfs", "no")}))
    text = terminal.text(view(results), "folder", 120)
    assert "No ratios: the baseline ext4 has no finished cell." in text
    assert "×" not in text


def test_names_that_would_command_a_terminal_are_made_harmless(tmp_path: Path) -> None:
    results = a_run(tmp_path / "run", FakeLab())
    hostile = "\x1b]0;owned\x07[bold]x|y*"
    manifest = replace(
        results.manifest,
        name=hostile,
        environment={"kernel": {"release": hostile}},
        stopped_because=hostile,
    )
    shown = view(RunResults(results.folder, manifest, results.samples))
    for text in (terminal.text(shown, "folder", 100), markdown.text(shown, "folder")):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "[bold]x|y*" in terminal.text(shown, "folder", 100)
    assert "\\[bold\\]x\\|y\\*" in markdown.text(shown, "folder")
