"""`fscost compare` from end to end, in the fake lab."""

import csv
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from fscost.errors import HostError
from fscost.results import load
from fscost.run.lock import exclusive

Run = Callable[..., Any]
THREE = ("--min-repetitions", "3", "--max-repetitions", "3")


def only_run(folder: Path) -> Path:
    (found,) = (path for path in (folder / "fscost-runs").iterdir() if not path.is_symlink())
    return found


def test_without_arguments_it_compares_five_profiles_on_a_small_workload(
    fscost: Run, tmp_path: Path
) -> None:
    found = fscost("compare", "--lab", "fake")
    for profile in ("ext4", "ext4 -o noatime", "ext4 -O ^has_journal", "xfs", "btrfs"):
        assert f"\n{profile} " in found.stdout
    assert load(only_run(tmp_path)).manifest.workload["name"] == "small-files"
    assert "remaining" in found.stderr
    assert "remaining" not in found.stdout


def test_a_command_and_profiles_as_people_spell_them(compare: Run, tmp_path: Path) -> None:
    arguments = (
        "--on",
        "ext4",
        "--on",
        "ext4 -O ^has_journal",
        "--prepare",
        "cp -r /etc .",
        "--out",
        "here",
        "--keep",
        "none",
    )
    compare(*arguments, command=("sh", "-c", "echo 'a b' > c"))
    manifest = load(tmp_path / "here").manifest
    assert manifest.profile_names == ["ext4", "ext4 -O ^has_journal"]
    assert [
        (step["name"], step["shell"], step["measured"]) for step in manifest.workload["steps"]
    ] == [
        ("prepare", "cp -r /etc .", False),
        ("run", """sh -c 'echo '"'"'a b'"'"' > c'""", True),
    ]
    assert manifest.command_line[:2] == ["fscost", "compare"]


def test_json_on_standard_output_is_one_object_and_nothing_else(compare: Run) -> None:
    found = compare("--json", lab="fake:skip=xfs,fail=btrfs", check=(1,))
    value = json.loads(found.stdout)
    assert [entry["profile"] for entry in value["skipped"]] == ["xfs"]
    assert [entry["cell"] for entry in value["failed"]] == ["btrfs.0", "btrfs.1"]
    assert {row["profile"] for row in value["rows"]} == {
        "ext4",
        "ext4 -o noatime",
        "ext4 -O ^has_journal",
    }
    assert "skipped: xfs, because xfs is not in this kernel" in found.stderr


def test_csv_and_markdown_go_to_files_beside_the_table(compare: Run, tmp_path: Path) -> None:
    found = compare("--csv", "rows.csv", "--markdown", "table.md", *THREE)
    assert "written" in found.stdout
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert {row["metric"] for row in rows} >= {"device_write_bytes", "wall_s", "device_flushes"}
    assert (tmp_path / "table.md").read_text().startswith("## true: ")


def test_csv_on_standard_output_is_alone_there(compare: Run) -> None:
    found = compare("--csv", "-", *THREE)
    rows = list(csv.DictReader(found.stdout.splitlines()))
    assert all(row["profile"] and row["median"] for row in rows)


def test_show_prints_a_run_again_in_any_form(compare: Run, fscost: Run, tmp_path: Path) -> None:
    first = compare("--json", "--out", "here", lab="fake:skip=xfs")
    assert json.loads(fscost("show", "here", "--json").stdout) == json.loads(first.stdout)
    assert "written" in fscost("show", "here").stdout
    assert fscost("show", "here", "--markdown", "-").stdout.startswith("## ")
    assert fscost("show", str(tmp_path), check=(2,)).stderr.startswith(
        f"fscost: {tmp_path} holds no run"
    )


def test_a_dry_run_prints_commands_and_leaves_nothing(compare: Run, tmp_path: Path) -> None:
    found = compare("--dry-run", "--on", "ext4 -O ^has_journal", command=("make", "-j2"))
    assert found.stdout.splitlines() == [
        "# ext4 -O ^has_journal",
        "mkfs.ext4 -O ^has_journal {disk.main}",
        "mount -t ext4 -o defaults {disk.main} {dir}",
        "make -j2",
        "umount {dir}",
    ]
    assert list(tmp_path.iterdir()) == []


def test_failed_cells_are_shown_and_told_by_the_exit_code(compare: Run) -> None:
    found = compare(lab="fake:fail=xfs", check=(1,))
    assert (
        "failed: xfs, repetitions 0, 1: the command ended with status 1\n  ls: cannot access"
        " 'nowhere'" in found.stdout
    )
    assert "cells/xfs.0/output.log" in found.stdout


def test_a_refused_flag_is_shown_in_mkfs_own_words(compare: Run) -> None:
    found = compare("--on", "xfs", lab="fake:fail_mkfs=xfs", check=(2,))
    assert "mkfs refused: invalid option" in found.stdout


SPECIAL: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown profile": (("--on", "zfs9"), "zfs9"),
    "unknown workload": (("--workload", "nothing-like-it"), "nothing-like-it"),
    "unknown baseline": (
        ("--on", "ext4", "--baseline", "xfs"),
        "--baseline 'xfs' is not one of the profiles",
    ),
    "twice": (("--on", "ext4", "--on", "ext4"), "'ext4' is named twice"),
    "size": (("--size", "4X"), "'4X' is not a size"),
    "disk too small": (("--size", "32M"), "too small"),
    "repetitions": (
        ("--min-repetitions", "5", "--max-repetitions", "3"),
        "--max-repetitions 3 is below --min-repetitions 5",
    ),
    "metric": (("--metric", "speed"), "'speed'"),
    "precision": (("--precision", "7"), "--precision 7"),
    "minutes": (("--max-minutes", "0"), "--max-minutes 0"),
    "keep": (("--keep", "some"), "--keep 'some'"),
    "settle": (("--settle", "never"), "--settle 'never'"),
    "probe": (("--probe", "0"), "--probe 0"),
    "sectors": (("--logical-block-size", "500"), "--logical-block-size 500"),
    "sectors in the wrong order": (
        ("--logical-block-size", "4096", "--physical-block-size", "512"),
        "below the logical",
    ),
    "prepare a built-in": (("--prepare", "true"), "--prepare requires a command"),
    "option": (("--set", "files"), "--set 'files' is not KEY=VALUE"),
    "option twice": (("--set", "files=1", "--set", "files=2"), "--set 'files=2' repeats a key"),
    "unknown option of a workload": (("--set", "nonsense=1"), "nonsense"),
    "scale": (("--scale", "0"), "--scale 0"),
    "two on standard output": (("--json", "--csv", "-"), "mixed on standard output"),
    "a file in no folder": (
        ("--csv", "nowhere/rows.csv"),
        "--csv nowhere/rows.csv cannot be written",
    ),
    "lab": (("--lab", "moon"), "--lab 'moon'"),
    "a device that is not confirmed": (("--device", "/dev/null"), "/dev/null"),
    "a confirmation of nothing": (
        ("--erase-device", "/dev/null"),
        "--erase-device /dev/null names neither",
    ),
    "resume and out": (("--resume", "x", "--out", "y"), "drop --out"),
    "resume of nothing": (("--resume", "nowhere"), "holds no run"),
    "unknown flag": (("--frobnicate",), "--frobnicate"),
}


@pytest.mark.parametrize("case", SPECIAL)
def test_bad_input_is_one_clear_error_and_leaves_nothing(
    fscost: Run, tmp_path: Path, case: str
) -> None:
    arguments, words = SPECIAL[case]
    lab = () if "--lab" in arguments else ("--lab", "fake")
    found = fscost("compare", *lab, *arguments, check=(2,))
    assert words in found.stderr
    assert found.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [("--workload", "small-files"), ("--source", "/etc"), ("--set", "a=1"), ("--scale", "2")],
)
def test_what_belongs_to_a_built_in_workload_is_refused_beside_a_command(
    compare: Run, arguments: tuple[str, ...]
) -> None:
    assert "leave one of the two out" in compare(*arguments, check=(2,)).stderr


def test_an_empty_command_is_refused(compare: Run) -> None:
    assert "the command is empty" in compare(command=("",), check=(2,)).stderr


def wait_for_cells(folder: Path, cells: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if len(json.loads((folder / "manifest.json").read_text())["cells"]) >= cells:
                return
        time.sleep(0.02)
    raise AssertionError(f"{folder} has no {cells} cells yet")


@pytest.fixture
def slow(start: Callable[..., "subprocess.Popen[str]"]) -> "subprocess.Popen[str]":
    """Start a run of 15 cells of 0.6 s each, so that a signal after a few comes in time."""
    return start("compare", "--lab", "fake:delay_s=0.2", *THREE, "--out", "here", "--", "true")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_keeps_what_is_finished_and_says_how_to_go_on(
    slow: "subprocess.Popen[str]",
    fscost: Run,
    compare: Run,
    tmp_path: Path,
    number: signal.Signals,
    status: int,
) -> None:
    wait_for_cells(tmp_path / "here", 3)
    slow.send_signal(number)
    out, err = slow.communicate(timeout=120)
    assert slow.returncode == status
    assert "resume with: fscost compare --resume here" in err
    assert "Traceback" not in err
    assert "written" in out
    before = load(tmp_path / "here")
    assert before.manifest.state == "interrupted"
    fscost("compare", "--lab", "fake:delay_s=0.05", "--resume", "here")
    compare(*THREE, "--out", "whole")
    after, whole = load(tmp_path / "here"), load(tmp_path / "whole")
    assert after.samples.equals(whole.samples)
    assert after.manifest.cells[: len(before.manifest.cells)] == before.manifest.cells


def test_a_killed_run_is_resumed_too_and_its_lock_is_gone(
    slow: "subprocess.Popen[str]", fscost: Run, compare: Run, tmp_path: Path
) -> None:
    wait_for_cells(tmp_path / "here", 2)
    slow.kill()
    slow.communicate(timeout=120)
    fscost("compare", "--lab", "fake", "--resume", "here")
    compare(*THREE, "--out", "whole")
    assert load(tmp_path / "here").samples.equals(load(tmp_path / "whole").samples)


def test_resume_takes_no_other_options_but_those_that_say_how_long(
    compare: Run, fscost: Run, tmp_path: Path
) -> None:
    compare("--on", "ext4", "--on", "xfs", *THREE, "--out", "here")
    for other, words in (
        (("--on", "btrfs"), "--on btrfs differs from the original options of here: ext4 xfs"),
        (("--seed", "9"), "--seed 9 differs from the original options of here: 0"),
        (("--", "false"), "this command differs from the original options of here: true"),
    ):
        assert (
            words
            in fscost("compare", "--lab", "fake", "--resume", "here", *other, check=(2,)).stderr
        )
    fscost(
        "compare",
        "--lab",
        "fake",
        "--resume",
        "here",
        "--seed",
        "0",
        "--min-repetitions",
        "5",
        "--max-repetitions",
        "5",
    )
    assert len(load(tmp_path / "here").manifest.cells) == 10


def test_a_run_that_compare_did_not_make_is_not_resumed_by_it(
    compare: Run, fscost: Run, tmp_path: Path
) -> None:
    compare(*THREE, "--out", "here")
    path = tmp_path / "here" / "manifest.json"
    value: dict[str, Any] = json.loads(path.read_text())
    for request, words in (
        ({"study": "x"}, "was not made by this version of `fscost compare`"),
        (value["request"] | {"seed": "x"}, "request.seed is damaged"),
    ):
        path.write_text(json.dumps(value | {"request": request}))
        assert words in fscost("compare", "--lab", "fake", "--resume", "here", check=(2,)).stderr


def test_a_used_folder_is_not_written_into(compare: Run, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "precious").write_text("")
    found = compare("--out", "here", check=(2,))
    assert "here is not empty" in found.stderr
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["precious"]


def test_a_second_run_on_this_machine_is_refused(fscost: Run, tmp_path: Path) -> None:
    """The test uses the real lock and the real lab. The lock is checked before any requirement on
    the host."""
    with ExitStack() as held:
        with suppress(
            HostError
        ):  # another real run on this machine holds the lock, which serves as well
            held.enter_context(exclusive())
        found = fscost("compare", "--on", "ext4", "--", "true", check=(2,))
    if "fscost-agent was not found" in found.stderr or "fscost-disk was not found" in found.stderr:
        pytest.skip("fscost-agent and fscost-disk are not built")
    assert "another fscost run is in progress (process " in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_that_nobody_reads_is_no_error_to_talk_of(
    start: Callable[..., "subprocess.Popen[str]"],
) -> None:
    process = start("profiles")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=120) in (1, 141)


@pytest.mark.parametrize("command", ["profiles", "workloads"])
def test_lists_have_one_line_each(fscost: Run, command: str) -> None:
    lines = fscost(command).stdout.partition("\n\n")[0].splitlines()
    assert len(lines) > 3
    assert all(len(line.split("  ", 1)) == 2 for line in lines)


def test_doctor_says_what_is_missing_and_what_enables_it(fscost: Run) -> None:
    found = fscost("doctor", check=(0, 2))
    labs = [line for line in found.stdout.splitlines() if not line.startswith("  ")]
    marks = [line.split()[0] for line in found.stdout.splitlines() if re.match("  \\S", line)]
    assert [line.split()[1] for line in labs] == ["native:", "vm:"]
    assert set(marks) <= {"ok", "missing", "NEEDED"}
    assert sum(line.endswith("; cannot run here") for line in labs) == 2 or found.returncode == 0
    assert len(marks) > 10


def test_help_names_every_command(fscost: Run) -> None:
    text = fscost("--help").stdout
    for command in ("compare", "show", "profiles", "workloads", "doctor", "recording"):
        assert command in text
    assert os.linesep in fscost("compare", "--help").stdout
