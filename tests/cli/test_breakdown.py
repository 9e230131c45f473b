"""The breakdown of bytes, for people and for programs."""

import csv
import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from fscost.report import terminal
from fscost.results import load, written
from fscost.view.breakdown import BAR_COLUMNS, BAR_MARKS, bar

Run = Callable[..., Any]
MIB = 1 << 20
THREE = ("--min-repetitions", "3", "--max-repetitions", "3")
PROFILES = ("--on", "ext4", "--on", "ext4 -O ^has_journal", "--on", "xfs")


def parts(
    data: float,
    journal: float,
    metadata: float,
    atime: float = 0,
    journal_atime: float = 0,
    unknown: float = 0,
) -> dict[str, float]:
    names = (
        written.FILE_DATA,
        written.JOURNAL,
        written.METADATA,
        written.ATIME,
        written.JOURNAL_ATIME,
        written.UNKNOWN,
    )
    return dict(zip(names, (data, journal, metadata, atime, journal_atime, unknown), strict=True))


@pytest.mark.parametrize(
    ("values", "longest", "lengths"),
    [
        (parts(12, 6, 6), 24, (12, 6, 6, 0, 0)),
        (parts(6, 3, 3), 24, (6, 3, 3, 0, 0)),
        (parts(2.6, 0, 0), 24, (3, 0, 0, 0, 0)),
        (parts(12, 6, 6, atime=4, journal_atime=3), 24, (12, 3, 5, 4, 0)),
        (parts(0, 0, 0, unknown=24), 24, (0, 0, 0, 0, 24)),
        (parts(0, 0, 0), 24, (0, 0, 0, 0, 0)),
        (parts(0, 0, 0), 0, (0, 0, 0, 0, 0)),
        # A third each: the total length is right, whatever the lengths of the parts.
        (parts(1, 1, 1), 3, (8, 8, 8, 0, 0)),
        (parts(1, 1, 1, unknown=1e-9), 3, (8, 8, 8, 0, 0)),
    ],
)
def test_a_bar_is_as_long_as_its_bytes(
    values: dict[str, float], longest: float, lengths: tuple[int, ...]
) -> None:
    drawn = bar(values, longest)
    assert tuple(drawn.count(mark) for mark in BAR_MARKS) == lengths
    assert drawn == "".join(sorted(drawn, key=BAR_MARKS.index))


def test_bars_compare_between_profiles(compare: Run, fscost: Run) -> None:
    compare(*PROFILES, *THREE, "--out", "here")
    text = fscost("show", "here", columns=80).stdout
    lengths = [
        sum(line.count(mark) for mark in BAR_MARKS)
        for line in text.splitlines()
        if BAR_MARKS[0] * 3 in line
    ]
    assert len(lengths) == 3
    assert max(lengths) == lengths[-1] == BAR_COLUMNS
    legend = " ".join(text.split())
    for words in (
        "█ file data",
        "▓ journal or log",
        "▒ metadata",
        "░ journal and metadata written only for access times, which noatime avoids",
    ):
        assert words in legend


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_a_bar_is_in_one_line_at_every_width(compare: Run, columns: int) -> None:
    text = compare(
        "--on",
        "ext4 -O ^has_journal,^metadata_csum -o noatime,data=ordered",
        *THREE,
        columns=columns,
    ).stdout
    assert sum(BAR_MARKS[0] in line and "file data" not in line for line in text.splitlines()) == 1


def test_marks_have_colours_where_there_is_colour() -> None:
    buffer = StringIO()
    Console(file=buffer, force_terminal=True, color_system="standard").print(
        terminal._marked(BAR_MARKS[:4])
    )
    assert buffer.getvalue().count("\x1b[") >= 8


def test_a_difference_that_is_called_says_where_the_bytes_went(compare: Run) -> None:
    value = json.loads(compare("--json", *PROFILES, *THREE).stdout)
    [less] = [line for line in value["findings"] if line.startswith("ext4 -O ^has_journal: ")]
    assert " less than ext4: journal −" in less
    [atime] = [line for line in value["findings"] if "noatime" in line]
    shares = "13 % under ext4 -O ^has_journal, 13 % under xfs, 13 % under ext4"
    what = "Bytes written only for access times, which noatime would have avoided"
    assert atime == f"{what}: {shares}"


def test_what_is_not_called_a_difference_is_not_explained_as_one(compare: Run) -> None:
    value = json.loads(
        compare("--json", *PROFILES, "--min-repetitions", "1", "--max-repetitions", "1").stdout
    )
    assert not [line for line in value["findings"] if " than ext4" in line]


def test_without_access_times_nobody_is_told_of_noatime(compare: Run) -> None:
    value = json.loads(compare("--json", "--on", "ext4 -o noatime", *THREE).stdout)
    assert value["findings"] == []
    [atime] = [
        row for row in value["rows"] if (row["phase"], row["metric"]) == ("total", written.ATIME)
    ]
    assert atime["median"] == 0


def test_a_structure_that_is_zero_everywhere_is_in_the_samples_alone(
    compare: Run, tmp_path: Any
) -> None:
    found = compare("--csv", "-", *PROFILES, *THREE, "--out", "here")
    shown = {row["metric"] for row in csv.DictReader(found.stdout.splitlines())}
    kept = set(load(tmp_path / "here").samples["metric"].to_pylist())
    assert {"superblock_write_bytes", "mixed_write_bytes"} <= kept - shown
    assert {
        "journal_copy_write_bytes",
        "log_write_bytes",
        "inode_table_write_bytes",
        *written.KINDS,
        written.ATIME,
    } <= shown


def test_a_profile_that_is_not_explained_says_why_once_and_has_no_numbers(
    compare: Run, fscost: Run
) -> None:
    found = compare("--out", "here", *PROFILES, *THREE, lab="fake:unexplained=xfs")
    assert found.stdout.count("not explained: ") == 1
    assert "not explained: xfs, because xfs is not a supported file system" in found.stdout
    lines = [line for line in found.stdout.splitlines() if line.startswith("xfs ")]
    assert len(lines) == 2, "the answer and the phases"
    assert not any(mark in line for line in lines for mark in BAR_MARKS)
    value = json.loads(fscost("show", "here", "--json").stdout)
    assert value["not_explained"] == [
        {"profile": "xfs", "because": "xfs is not a supported file system"}
    ]
    assert not {row["metric"] for row in value["rows"] if row["profile"] == "xfs"} & set(
        written.MEANINGS
    )
    assert "- not explained: xfs, because" in fscost("show", "here", "--markdown", "-").stdout


def test_a_run_in_which_nothing_is_explained_has_no_such_table(compare: Run) -> None:
    text = compare("--on", "xfs", *THREE, lab="fake:unexplained=xfs").stdout
    assert "written, by kind" not in text
    assert "fscost explain" not in text
    assert text.count("not explained: xfs") == 1


def test_an_explanation_that_does_not_add_up_fails_its_cells(compare: Run) -> None:
    found = compare(*PROFILES, *THREE, lab="fake:miscount=xfs", check=(1,))
    assert "failed: xfs, repetition" in found.stdout
    assert "bytes explained, " in found.stdout
    assert "written by the kernel's counter" in found.stdout


@pytest.mark.parametrize(("keep", "offered"), [("one", True), ("none", False)])
def test_the_way_on_is_named_where_a_recording_was_kept(
    compare: Run, keep: str, offered: bool
) -> None:
    text = compare(*PROFILES, *THREE, "--keep", keep, "--out", "my run").stdout
    assert ("fscost explain 'my run' --profile ext4" in text) == offered
