"""What users of similar tools expect: `help X`, `open`, `--brief`, and a run as a whole."""

import csv
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import valid
from tests.test_recording_strip import CORPUS

from fscost.crash import states

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("asked", "same"),
    [(("compare",), ("compare", "--help")), (("study", "run"), ("study", "run", "--help"))],
)
def test_help_of_a_command(fscost: Run, asked: tuple[str, ...], same: tuple[str, ...]) -> None:
    assert fscost("help", *asked).stdout == fscost(*same).stdout != ""


def test_help_alone_and_of_nothing(fscost: Run) -> None:
    assert fscost("help").stdout == fscost("--help").stdout == fscost("help", "help").stdout
    assert "did you mean compare" in fscost("help", "compar", check=(2,)).stderr


def test_the_answer_alone(compare: Run, fscost: Run) -> None:
    whole = compare("-o", "one", "--on", "ext4", "--on", "xfs").stdout.splitlines()
    brief = compare("-o", "two", "--on", "ext4", "--on", "xfs", "--brief", columns=400).stdout
    [answer] = brief.splitlines()
    assert answer in " ".join(whole)
    assert fscost("show", "two", "--brief", columns=400).stdout == brief
    assert fscost("diff", "one", "two", "--brief").stdout.count("\n") == 1
    for more in ("--json", "--wide"):
        assert "--brief" in fscost("show", "two", "--brief", more, check=(2,)).stderr


def test_open_writes_a_report_once(
    compare: Run, fscost: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    compare("--on", "ext4", "-r", "1")
    page = Path(fscost("open").stdout.strip())
    # Links to the newest run are followed, so that the page's address stays right.
    assert page.parent.name != "latest"
    assert (tmp_path / page).read_text().startswith("<!")
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    before = (tmp_path / page).stat().st_mtime_ns
    fscost("open", str(page.parent))
    assert opened == [(tmp_path / page).as_uri()]
    assert (tmp_path / page).stat().st_mtime_ns == before
    assert "no_such" in fscost("open", "no_such", check=(2,)).stderr


def test_a_run_is_stripped_as_a_whole(compare: Run, fscost: Run, tmp_path: Path) -> None:
    compare("-o", "run", "--on", "ext4", "--on", "xfs", "-r", "2", "--keep", "all")
    # The fake lab records nothing.
    for path in (tmp_path / "run" / "cells").glob("*/recording.fsc*"):
        path.write_bytes((CORPUS / "ext4.fscost").read_bytes())
    said = fscost("recording", "strip", "run", "shared").stdout
    made = sorted(path.name for path in (tmp_path / "shared").iterdir())
    assert made == [f"{name}-{number}.fscost" for name in ("ext4", "xfs") for number in (0, 1)]
    assert said.count("without the contents of files") == 4
    assert "exists" in fscost("recording", "strip", "run", "shared", check=(2,)).stderr


def test_verdicts_after_power_cuts_are_in_every_output(
    compare: Run, fscost: Run, tmp_path: Path
) -> None:
    compare("-o", "run", "--on", "ext4", "--on", "xfs", "-r", "1")
    assert valid(fscost("show", "run", "--json").stdout)["power_cut"] == {}
    folder = tmp_path / "run" / "crash"
    folder.mkdir()
    verdicts = {"ext4": "SAFE", "xfs": "LOSES-ACKED"}
    states.save(folder, states.Findings("files", "in-order", verdicts, {"ext4": 7, "xfs": 9}))
    assert valid(fscost("show", "run", "--json").stdout)["power_cut"] == verdicts
    page = (tmp_path / fscost("report", "run").stdout.strip()).read_text()
    assert ">power cut<" in page
    # In the colour of a verdict.
    assert 'class="bad"><bdi>LOSES-ACKED</bdi>' in page
    assert 'class="good"><bdi>SAFE</bdi>' in page
    assert "the worst of at least 7 states" in page


def test_differences_are_wide_and_written_for_spreadsheets(compare: Run, fscost: Run) -> None:
    for name in ("one", "two"):
        compare("--on", "ext4", "--on", "xfs", "-r", "3", "--out", name)
    narrow = fscost("diff", "one", "two", "--csv", "rows.csv").stdout
    wide = fscost("diff", "one", "two", "--wide").stdout
    for word in ("95 % interval", "verdict"):
        assert word in wide
        assert word not in narrow
    text = fscost("diff", "one", "two", "--csv", "-").stdout
    assert Path("rows.csv").read_text() == text
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["metric"], row["profile"], row["run"], row["n"]) for row in rows] == [
        ("device_write_bytes", profile, run, "3")
        for profile in ("ext4", "xfs")
        for run in ("one", "two")
    ]
    assert [bool(row["ratio_low"]) for row in rows] == [False, True] * 2
    for other in ("--json", "--brief"):
        assert "mixed" in fscost("diff", "one", "two", "--csv", "-", other, check=(2,)).stderr
