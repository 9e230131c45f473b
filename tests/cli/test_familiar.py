"""Conventions from other tools: names, counts, parameter lists, several commands."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fscost.cli.progress import LiveProgress, Progress
from fscost.results import CellRecord, load

Run = Callable[..., Any]
FAKE = ("--lab", "fake", "-r", "2", "--on", "ext4", "--on", "xfs")


def test_names_and_counts_are_as_asked(fscost: Run, tmp_path: Path) -> None:
    fscost("compare", *FAKE, "-n", "my db", "-o", "here", "--", "true")
    manifest = load(tmp_path / "here").manifest
    assert manifest.name == "my db"
    assert {cell.repetition for cell in manifest.cells} == {0, 1}
    assert fscost("show", "here").stdout.startswith("my db: ")


def test_latest_is_the_last_run(fscost: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        fscost("compare", *FAKE, "-n", name, "--", "true")
    [one, two] = sorted(tmp_path.glob("fscost-runs/2*"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{4}-one", one.name)
    assert (tmp_path / "fscost-runs/latest").readlink() == Path(two.name)
    assert fscost("show", "fscost-runs/latest").stdout.startswith("two: ")
    listed = fscost("ls", columns=200).stdout.splitlines()
    assert [line.split()[0] for line in listed] == [
        f"fscost-runs/{each.name}" for each in (one, two)
    ]
    assert all(" wrote the least: " in line for line in listed)


def test_latest_that_is_something_else_stays(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "fscost-runs").mkdir()
    (tmp_path / "fscost-runs/latest").write_text("mine")
    fscost("compare", *FAKE, "--", "true")
    assert (tmp_path / "fscost-runs/latest").read_text() == "mine"


def test_one_bad_run_hides_no_other(fscost: Run, tmp_path: Path) -> None:
    fscost("compare", *FAKE, "-o", "runs/good", "--", "true")
    (tmp_path / "runs/bad").mkdir()
    (tmp_path / "runs/bad/manifest.json").write_text("{")
    bad, good = fscost("ls", "runs", columns=200).stdout.splitlines()
    assert bad.startswith("runs/bad   unreadable: ")
    assert "wrote the least" in good


def test_one_word_with_blanks_is_for_the_shell(fscost: Run, tmp_path: Path) -> None:
    fscost("compare", *FAKE, "-o", "here", "echo a && echo b")
    [step] = load(tmp_path / "here").manifest.workload["steps"]
    assert step["shell"] == "echo a && echo b"
    fscost("compare", *FAKE, "-o", "words", "--", "echo", "a && b")
    [step] = load(tmp_path / "words").manifest.workload["steps"]
    assert step["shell"] == "echo 'a && b'"


def test_here_environment_failure_and_filling_are_in_the_steps(fscost: Run, tmp_path: Path) -> None:
    options = ("--env", "A=b c", "--ignore-failure", "--fill", "90%")
    fscost("compare", *FAKE, *options, "-o", "here", "--", "{here}/job.sh", "x")
    fill, step = load(tmp_path / "here").manifest.workload["steps"]
    assert step["shell"] == f"( {tmp_path}/job.sh x\n) || true"
    assert step["env"] == [["A", "b c"]]
    assert (fill["name"], fill["measured"]) == ("fill", False)
    assert " * 90 / 100 " in fill["shell"]


@pytest.mark.parametrize("command", [("./job.sh",), ("sh", "job.sh", "1"), ("sh job.sh 1",)])
def test_a_command_that_stands_here_says_how_to_reach_it(
    fscost: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "job.sh").write_text("true")
    said = fscost("compare", *FAKE, "--", *command, check=(2,)).stderr
    assert "does not exist where the command starts" in said
    assert "write {here}/job.sh" in said
    fscost("compare", *FAKE, "--", "touch", "job.sh")
    fscost("compare", *FAKE, "--prepare", "cp {here}/job.sh .", "--", "./job.sh")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["-r", "2", "--min-repetitions", "1"], "--repetitions sets both bounds"),
        (["--env", "=x"], "--env '=x' sets no variable"),
        (["--env", "A"], "--env 'A' sets no variable"),
        (["-n", ""], "--name '' is not a valid name"),
        (["--per", "0:tx"], "--per '0:tx' is not a number of operations"),
        (["--per", "x"], "--per 'x' is not a number of operations"),
        (["--fill", "100%"], "--fill '100%' is not a percentage from 1% to 99%"),
        (["-L", "mode", "a,b"], "-L mode: no option contains {mode}"),
        (["-L", "mode", "a,"], "-L mode a, lists no values"),
        (["-P", "n", "1..x"], "-P n 1..x is not a range"),
        (["-P", "n", "1..9:0"], "-P n 1..9:0 has 0 values"),
        (["-P", "n", "1..999999999"], "-P n 1..999999999 has 999,999,999 values"),
        (["--warmup", "-1"], "--warmup -1 is out of range"),
        (["--run", "a=b"], "--run already gives the commands"),
    ],
)
def test_what_makes_no_sense_is_refused(fscost: Run, arguments: list[str], cause: str) -> None:
    said = fscost("compare", "--lab", "fake", *arguments, "--", "true", check=(2,)).stderr
    assert cause in said


@pytest.mark.parametrize(
    ("runs", "cause"),
    [
        (["a"], "--run 'a' is not NAME=COMMAND"),
        (["a="], "--run 'a=' is not NAME=COMMAND"),
        (["a=true", "a=false"], "--run 'a=false' repeats a name"),
    ],
)
def test_several_commands_need_names_of_their_own(fscost: Run, runs: list[str], cause: str) -> None:
    arguments = [word for run in runs for word in ("--run", run)]
    assert cause in fscost("compare", "--lab", "fake", *arguments, check=(2,)).stderr


def test_bytes_for_each_operation_are_a_column(fscost: Run) -> None:
    fscost("compare", *FAKE, "--per", "500:tx", "-o", "here", "--", "true")
    header, *rows = fscost("show", "here").stdout.split("\n\n")[2].splitlines()
    assert "per tx" in header
    [total] = [
        row["median"]
        for row in json.loads(fscost("show", "here", "--json").stdout)["rows"]
        if (row["profile"], row["phase"], row["metric"]) == ("ext4", "total", "device_write_bytes")
    ]
    [ext4] = [row for row in rows if row.startswith("ext4")]
    assert f"{total / 500 / 1024:.1f} KiB" in ext4
    assert "per row" in fscost("show", "here", "--per", "7:row").stdout


def test_parameter_lists_make_a_run_of_each_combination(fscost: Run, tmp_path: Path) -> None:
    lists = ("-L", "mode", "delete,wal", "-L", "size", "1,2")
    said = fscost("compare", *FAKE, *lists, "-o", "out", "--", "db", "{mode}", "{size}").stdout
    shells = {
        folder.name: load(folder).manifest.workload["steps"][0]["shell"]
        for folder in sorted(tmp_path.glob("out/*"))
    }
    assert sorted(shells.values()) == ["db delete 1", "db delete 2", "db wal 1", "db wal 2"]
    assert set(shells) == {
        f"mode-{mode}-size-{size}" for mode in ("delete", "wal") for size in "12"
    }
    assert "changes are relative to mode=delete, size=1" in said
    assert "mode=delete, size=1: xfs wrote the least: " in said
    assert "Why, and its tables: fscost show out/mode-delete-size-1\n" in said


def test_a_range_makes_a_run_of_each_number(fscost: Run, tmp_path: Path) -> None:
    ranges = ("-P", "n", "1..6:2", "-P", "share", "0.1..0.3:0.1")
    fscost("compare", *FAKE, "-r", "1", *ranges, "-o", "out", "--", "job", "{n}", "{share}")
    found = [load(each).manifest.workload["steps"][0]["shell"] for each in tmp_path.glob("out/*")]
    assert sorted(found) == [f"job {n} {share}" for n in (1, 3, 5) for share in (0.1, 0.2, 0.3)]


def test_warmups_are_unmeasured_runs_of_the_command(fscost: Run, tmp_path: Path) -> None:
    fscost("compare", *FAKE, "-w", "2", "--prepare", "mkdir x", "-o", "out", "--", "cp", "a", "b")
    steps = load(tmp_path / "out").manifest.workload["steps"]
    assert [(step["name"], step["shell"], step["measured"]) for step in steps] == [
        ("prepare", "mkdir x", False),
        ("warmup-1", "cp a b", False),
        ("warmup-2", "cp a b", False),
        ("run", "cp a b", True),
    ]


def test_the_output_of_a_command_is_that_of_its_steps(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text(
        "=== mkfs\nmade\n=== superblock\nsb\n=== run\none\n\x1b[2J\n=== run\nagain\n"
    )
    record = CellRecord("0", "ext4", 0, 1, 0, "done", 1.0, "", "", "", "output.log", {})
    said = StringIO()
    shown = Progress(said, show_output=True)
    shown._folder = tmp_path
    shown.cell_ends(record, (0, 0))
    assert said.getvalue().splitlines()[1:] == ["  one", "  \ufffd[2J", "  again"]


def test_a_terminal_gets_no_line_for_each_cell_that_finished() -> None:
    record = CellRecord("0", "ext4", 0, 1, 0, "done", 1.0, "", "", "", "", {})
    said = StringIO()
    shown = LiveProgress(said)
    shown.cell_ends(record, (0, 0))
    assert said.getvalue() == ""
    shown.cell_ends(replace(record, status="failed", because="no mkfs"), (0, 0))
    assert "FAILED: no mkfs" in said.getvalue()
    shown.close()


def test_the_expected_time_of_a_command_lacks_the_commands_own(fscost: Run) -> None:
    said = fscost("compare", *FAKE, "-o", "out", "--", "true").stderr
    assert ", and the command's own in each cell" in said
    said = fscost("compare", *FAKE, "-o", "built-in", "--workload", "fsync-log").stderr
    assert "command's own" not in said


def test_named_commands_are_related(fscost: Run, tmp_path: Path) -> None:
    commands = ("--run", "a=echo 1", "--run", "b=echo 1 && echo 2")
    found = json.loads(fscost("compare", *FAKE, *commands, "-o", "out", "--json").stdout)
    assert [(row["profile"], row["run"]) for row in found["rows"]] == [
        ("ext4", "a"),
        ("ext4", "b"),
        ("xfs", "a"),
        ("xfs", "b"),
    ]
    # The fake lab writes the same bytes for any command.
    assert [row["ratio"] for row in found["rows"] if row["run"] == "b"] == [1, 1]
    assert {row["verdict"] for row in found["rows"] if row["run"] == "b"} == {"no difference shown"}
    again = json.loads(fscost("diff", *map(str, sorted(tmp_path.glob("out/*"))), "--json").stdout)
    assert again == found


def test_braces_in_a_profile_are_profiles(fscost: Run, tmp_path: Path) -> None:
    fscost("compare", "--lab", "fake", "-r", "1", "--on", "ext4 -o commit={5,30}", "-o", "here")
    names = load(tmp_path / "here").manifest.profile_names
    assert names == ["ext4 -o commit=5", "ext4 -o commit=30"]


def test_times_and_labs_do_not_compare_between_runs(fscost: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fscost("compare", *FAKE, "-n", name, "-o", name, "--", "true")
    said = fscost("diff", "a", "b", "--metric", "wall_s", check=(2,)).stderr
    assert "times are comparable only within one run" in said
    manifest = tmp_path / "b/manifest.json"
    manifest.write_text(manifest.read_text().replace('"lab": "fake"', '"lab": "vm"'))
    said = fscost("diff", "a", "b", check=(2,)).stderr
    assert "runs of different labs cannot be compared" in said
    assert "a comparison needs at least two runs" in fscost("diff", "a", check=(2,)).stderr


def test_here_is_replaced_in_named_commands_too(fscost: Run, tmp_path: Path) -> None:
    fscost("compare", *FAKE, "--run", "a={here}/a.sh", "--run", "b=true", "-o", "here")
    [step] = load(tmp_path / "here" / "a").manifest.workload["steps"]
    assert step["shell"] == f"{tmp_path}/a.sh"


def test_workloads_of_a_suite_are_divided_by_their_own_operations(
    fscost: Run, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(
        'version = 1\nprofiles = ["ext4", "xfs"]\n'
        '[workloads.a]\ncommand = "true"\nper = "10:fsync"\n'
        '[workloads.b]\ncommand = "true"\nper = "20:tx"\n'
    )
    said = fscost("run", "s.toml", "--lab", "fake", "-r", "2").stdout
    assert "a, per fsync" in said
    assert "b, per tx" in said
    assert "a vs b" not in said
    assert "b vs a" not in said
