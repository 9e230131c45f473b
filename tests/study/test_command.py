"""`fscost study` as a user runs it: in the fake lab, and once for real."""

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Ended
from tests.cli.conftest import Fscost as Program
from tests.cli.conftest import fscost as program

from fscost import study
from fscost.lab.native import NativeLab
from fscost.run import Local, execute
from fscost.study import Verdict

__all__ = ["program"]
Fscost = Callable[..., Ended]
WRITES = "All of the writes are caused by atime"
SMALL = ("--set", "files=4", "--max-repetitions", "2", "--min-repetitions", "2")


@pytest.fixture
def fscost(program: Program) -> Fscost:
    """Run fscost in this process: starting Python for each call takes most of the time."""

    def run(*arguments: str, status: int = 0) -> Ended:
        return program("study", *arguments, check=(status,))

    return run


def test_the_program_itself_takes_the_command(tmp_path: Path) -> None:
    words = [*PROGRAM, "study", "show", "nowhere"]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert "nowhere holds no run" in found.stderr


def test_the_list_has_a_line_for_each_study_and_scale(fscost: Fscost) -> None:
    assert [
        line.split()[:2] for line in fscost("list").stdout.splitlines() if line.startswith("  --")
    ] == [
        ["--scale", "small"],
        ["--scale", "medium"],
        ["--scale", "full"],
    ] * 5


def test_a_run_leaves_its_report_in_an_ordinary_run_folder(fscost: Fscost, tmp_path: Path) -> None:
    found = fscost(
        "run",
        "journal-tax",
        "--lab",
        "fake",
        "--out",
        "run",
        "--json",
        "--markdown",
        "mine.md",
        *SMALL,
    )
    value = json.loads(found.stdout)
    assert value["study"] == "journal-tax"
    assert json.loads((tmp_path / "run/study.json").read_text()) == value
    assert (tmp_path / "run/study.md").read_text() == (tmp_path / "mine.md").read_text()
    assert {"manifest.json", "samples.parquet"} <= {
        entry.name for entry in (tmp_path / "run").iterdir()
    }
    again = fscost("show", "run", "--json")
    assert json.loads(again.stdout) == value


def test_brief_counts_the_claims_by_verdict(fscost: Fscost) -> None:
    run = ("run", "snapshot-atime", "--lab", "fake", "--out", "run", *SMALL, "--brief")
    [answer] = fscost(*run).stdout.splitlines()
    claims = len(study.load("snapshot-atime").claims)
    assert re.fullmatch(rf"Of {claims} claims: (\d+ [a-z ]+(, )?)+\.", answer)
    assert fscost("show", "run", "--brief").stdout == f"{answer}\n"
    for words in (run, ("show", "run", "--brief")):
        told = fscost(*words, "--json", status=2)
        assert (told.stdout, "drop --brief" in told.stderr) == ("", True)


def test_a_resumed_run_goes_on_as_it_began(fscost: Fscost, tmp_path: Path) -> None:
    fscost("run", "snapshot-atime", "--lab", "fake", "--out", "run", "--seed", "9", *SMALL)
    fscost(
        "run",
        "snapshot-atime",
        "--lab",
        "fake",
        "--resume",
        "run",
        "--min-repetitions",
        "3",
        "--max-repetitions",
        "3",
    )
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert [cell["repetition"] for cell in manifest["cells"]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert manifest["seed"] == 9


def test_only_the_profiles_asked_for_run_also_when_resumed(fscost: Fscost, tmp_path: Path) -> None:
    """The other profiles' disks are left out too: neither profile has a disk `journal`."""
    words = ("run", "external-journal", "--lab", "fake", "--set", "thread_mib=1")
    few = ("--min-repetitions", "2", "--max-repetitions", "2")
    fscost(*words, *few, "--profile", "xfs", "--profile", "ext4", "--out", "run")
    more = ("--min-repetitions", "3", "--max-repetitions", "3")
    fscost("run", "external-journal", "--lab", "fake", "--resume", "run", *more)
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    chosen = study.load("external-journal").profiles
    assert [found["name"] for found in manifest["profiles"]] == [
        chosen["ext4"].name,
        chosen["xfs"].name,
    ]
    assert len(manifest["cells"]) == 6
    again = fscost(*words[:4], "--resume", "run", "--profile", "btrfs", status=2)
    assert "--profile cannot be changed" in again.stderr


def test_optional_profiles_run_only_if_they_are_named(fscost: Fscost) -> None:
    """They check a file system of 1 TiB with e2fsck, in the phase mount."""
    for short in ("ext2_big", "ext3_big", "ext4_big"):
        assert study.load("nine-filesystems").profiles[short].after_mount == (
            ("blockdev", "--setra", "256", "{disk.big}"),
            ("e2fsck", "-f", "-n", "{disk.big}"),
        )
    fsck = "fsck of ext2 (and ext3?) takes ages"
    words = ("run", "nine-filesystems", "--lab", "fake", "--min-repetitions", "1")
    usual = fscost(*words, "--max-repetitions", "1", "--set", "files=1", "--out", "usual")
    assert "ext2-big" not in usual.stderr
    assert fsck in usual.stderr.partition("can decide")[2]
    named = fscost(
        *(*words, "--max-repetitions", "1", "--set", "files=1", "--out", "named"),
        *("--profile", "ext2_big", "--profile", "ext3_big"),
    )
    assert fsck not in named.stderr


def test_only_the_profiles_that_the_study_names_wear_its_device(
    fscost: Fscost, tmp_path: Path
) -> None:
    words = ("run", "nine-filesystems", "--lab", "fake", "--min-repetitions", "1")
    few = ("--max-repetitions", "1", "--set", "files=1", "--set", "big_mib=1")
    fscost(*words, *few, "--profile", "ext4_round", "--profile", "nilfs2_round", "--out", "worn")
    fscost(*words, *few, "--profile", "ext4", "--out", "usual")
    worn, usual = (
        json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("worn", "usual")
    )
    assert worn["options"]["wear_device"]["name"] == "first-generation-block-map-32gb"
    assert [disk["size_bytes"] for found in worn["profiles"] for disk in found["disks"]] == [
        512 << 20,
        512 << 20,
    ]
    assert "wear_device" not in usual["options"]


def test_a_run_on_another_source_goes_on_with_it(fscost: Fscost, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "mine.tar", "w") as tar:
        tar.add(__file__, "mine/a.c")
    fscost(
        *("run", "journal-tax", "--lab", "fake", "--out", "run", "--source", "mine.tar"),
        *("--set", "make=gcc -c a.c", "--max-repetitions", "1"),
    )
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["request"]["source"] == str(tmp_path / "mine.tar")
    more = ("--min-repetitions", "2", "--max-repetitions", "2")
    resumed = fscost("run", "journal-tax", "--lab", "fake", "--resume", "run", *more)
    assert f"--source {tmp_path / 'mine.tar'}" in resumed.stderr
    (tmp_path / "mine.tar").unlink()
    gone = fscost("run", "journal-tax", "--lab", "fake", "--resume", "run", *more, status=2)
    assert str(tmp_path / "mine.tar") in gone.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "journal"), "no study is called 'journal'"),
        (("run", "journal-tax", "--scale", "huge"), "--scale small or medium or full"),
        (("run", "journal-tax", "--set", "speed=4"), "no option 'speed'"),
        (("run", "snapshot-atime", "--source", "/"), "takes no --source"),
        (("run", "journal-tax", "--resume", "nowhere"), "nowhere holds no run"),
        (("run", "journal-tax", "--min-repetitions", "0"), "--min-repetitions"),
        (("show", "nowhere"), "nowhere holds no run"),
        (("run", "journal-tax", "--profile", "strickt"), "did you mean strict or strict_nj?"),
        (("run", "journal-tax", "--profile", "zfs"), "profiles: strict, strict_nj"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(
    fscost: Fscost, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    found = fscost(*arguments, *(("--lab", "fake") if arguments[0] == "run" else ()), status=2)
    assert message in found.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_study_is_not_resumed(fscost: Fscost) -> None:
    fscost("run", "snapshot-atime", "--lab", "fake", "--out", "run", *SMALL)
    assert (
        "is not a run of the study journal-tax"
        in fscost("run", "journal-tax", "--lab", "fake", "--resume", "run", status=2).stderr
    )
    assert (
        "--seed cannot be changed"
        in fscost(
            "run", "snapshot-atime", "--lab", "fake", "--resume", "run", "--seed", "1", status=2
        ).stderr
    )


def test_a_study_under_two_kernels_goes_on_under_both(fscost: Fscost, tmp_path: Path) -> None:
    fscost(
        "run",
        "snapshot-atime",
        "--lab",
        "fake",
        "--out",
        "run",
        "--kernel",
        "6.1",
        "--kernel",
        "6.12",
        *SMALL,
    )
    found = fscost(
        "run",
        "snapshot-atime",
        "--lab",
        "fake",
        "--resume",
        "run",
        "--min-repetitions",
        "3",
        "--max-repetitions",
        "3",
        "--json",
    )
    assert [
        (claim["kernel"], claim["criteria"][0]["n"])
        for claim in json.loads(found.stdout)["claims"]
        if claim["claim"] == WRITES
    ] == [
        ("6.1", 3),
        ("6.12", 3),
    ]
    assert (
        "--kernel cannot be changed"
        in fscost(
            "run", "snapshot-atime", "--lab", "fake", "--resume", "run", "--kernel", "6.1", status=2
        ).stderr
    )


def test_the_published_counts_are_the_full_scale(fscost: Fscost, tmp_path: Path) -> None:
    text = fscost("run", "nine-filesystems", "--scale", "full", "--lab", "fake", "--dry-run").stdout
    assert text.count('cp "{input}/big" big\n') == 2 * 10
    assert study.load("nine-filesystems").scales["full"].options == {
        "big_mib": 2048,
        "files": 126229,
        "directories": 22683,
    }
    assert not list(tmp_path.iterdir())


def test_a_dry_run_prints_every_command_and_runs_none(fscost: Fscost, tmp_path: Path) -> None:
    text = fscost("run", "journal-tax", "--lab", "fake", "--dry-run").stdout
    assert text.count("# ") >= 9
    assert "make clean" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.root
@pytest.mark.slow
def test_snapshots_are_really_unshared(tmp_path: Path) -> None:
    """The smallest real run: access times of directories alone make metadata grow, and noatime
    stops it. It has a lock of its own: concurrent runs do not change byte counts."""
    found = study.load("snapshot-atime")
    small = {"files": "600", "snapshots": "6"}
    spec = study.plan(
        found,
        study.scale_of(found, "small"),
        tmp_path / "run",
        options=small,
        min_repetitions=3,
        max_repetitions=3,
    )
    report = study.report(
        found, execute(spec, Local(NativeLab()), lock=f"fscost.test.{os.getpid()}.study").results
    )
    verdicts = {judged.claim.text: judged.verdict for judged in report.findings[0].claims}
    assert (
        verdicts["Reading a snapshotted btrfs with atime on unshares its metadata"]
        is Verdict.REPRODUCED
    )
    assert verdicts["noatime prevents the growth of metadata"] is Verdict.REPRODUCED
