"""Usage errors: a cause and a remedy, in one form whichever library found them."""

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "cause", "remedy"),
    [
        (["compare", "--scale", "abc"], "--scale 'abc' is not a number", "fscost compare --help"),
        (
            ["compare", "--min-repetitions", "1.5"],
            "--min-repetitions '1.5' is not a whole number",
            "fscost compare --help",
        ),
        (["compare", "--csvv", "x"], "unknown option --csvv", "did you mean --csv or --crash?"),
        (
            ["compare", "--runs", "3"],
            "unknown option --runs",
            "--min-repetitions and --max-repetitions",
        ),
        (["compare", "--on"], "--on needs a value", "--help"),
        (["compare", "--dry-run=x"], "--dry-run takes no value", "--help"),
        (["compare", "--size", "0", "--", "true"], "--size 0 is not above 0", "4G"),
        (["compare", "--size", "4X", "--", "true"], "--size '4X'", "4G"),
        (["compare", "--workload", ""], "no workload is called ''", "small-files"),
        (["compare", "--out", ""], "'' is not a path", "name a file or a folder"),
        (["compare", "--csv", "x/", "--", "true"], "--csv 'x/' is not a path of a file", "name a"),
        (["compare", "--force", "--", "true"], "--force requires --device", "leave it out"),
        (
            ["compare", "--modules", "/tmp", "--", "true"],
            "--modules requires a --kernel that is an image",
            "leave it out",
        ),
        (
            ["compare", "--metric", "wall", "--", "true"],
            "--metric 'wall' is unknown",
            "did you mean wall_s?",
        ),
        (
            ["compare", "-r", "0", "--", "true"],
            "--repetitions 0 measures nothing",
            "1 or more",
        ),
        (
            ["compare", "--max-repetitions", "0", "--", "true"],
            "--max-repetitions 0 measures nothing",
            "1 or more",
        ),
        (["comapre"], "unknown command 'comapre'", "did you mean compare?"),
        (["study", "runn"], "unknown command 'runn'", "did you mean run?"),
        (
            ["study", "run", "journaltax"],
            "no study is called 'journaltax'",
            "did you mean journal-tax?",
        ),
        (["show"], "RUN is missing", "fscost show --help"),
        (["explain", "x", "--by", "fil"], "--by 'fil' is unknown", "did you mean file?"),
        (["explain", "x", "--top", "0"], "--top 0 is too small", "give at least 1"),
        (["explain", "x", "--around", "3"], "--around requires --at", "leave it out"),
        (
            ["recording", "export", "a", "b"],
            "--as is missing",
            "one of: image, parquet, dm-log-writes",
        ),
        (["doctor", "x"], "unexpected argument 'x'", "fscost doctor --help"),
    ],
    ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else "",
)
def test_cause_and_remedy(fscost: Run, arguments: list[str], cause: str, remedy: str) -> None:
    told = fscost(*arguments, check=(2,))
    first, second = told.stderr.splitlines()
    assert first.startswith("fscost: ")
    assert cause in first
    assert second.startswith("  ")
    assert remedy in second
    assert told.stdout == ""


def test_the_bound_that_nobody_gave_gives_way(compare: Run) -> None:
    assert "1 cell, seed 0" in compare("--max-repetitions", "1", "--on", "ext4").stderr
    assert "11 cells" in compare("--min-repetitions", "11", "--on", "ext4").stderr


def test_one_file_system_under_two_names_is_noticed(compare: Run) -> None:
    told = compare(
        "--max-repetitions", "1", "--on", "ext4-noatime", "--on", "ext4  -o noatime"
    ).stderr
    assert "'ext4-noatime' and 'ext4 -o noatime' are the same profile" in told
