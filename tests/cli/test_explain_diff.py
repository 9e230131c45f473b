"""`fscost explain --diff`: the groups of a difference add up to it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kept_runs import run_of

Run = Callable[..., Any]
EXT4 = Path(__file__).parents[2] / "crates/explain/tests/data/ext/ext4.fscost"
COMMAND = "for i in 1 2 3 4 5 6; do echo $i > f$i; sync f$i; done"


@pytest.mark.root
def test_groups_add_up_to_what_compare_counted(fscost: Run) -> None:
    profiles = ("--on", "ext4", "--on", "ext4 -O ^has_journal")
    fscost("compare", "-o", "run", "-r", "1", "--size", "64M", *profiles, COMMAND)
    totals = {
        row["profile"]: int(row["median"])
        for row in json.loads(fscost("show", "run", "--json").stdout)["rows"]
        if (row["phase"], row["metric"]) == ("total", "device_write_bytes")
    }
    both = ("ext4 -O ^has_journal", "ext4")
    found = json.loads(fscost("explain", "run", "--diff", *both, "--json").stdout)
    sums = [
        sum(group[name] for group in found["groups"])
        for name in ("first_write_bytes", "second_write_bytes")
    ]
    assert sums == [totals[name] for name in both]
    journal = [group for group in found["groups"] if group["name"].startswith("journal_")]
    assert journal
    assert not any(group["first_write_bytes"] for group in journal)
    text = fscost("explain", "run", "--diff", *both, "--top", "2", columns=80).stdout
    assert text.startswith("ext4 wrote ")
    assert " more than ext4 -O ^has_journal (" in text
    assert f"({len(found['groups']) - 2} more)" in text
    # The answer names the journal of 6 forced commits, and the option that helps.
    shown = " ".join(fscost("show", "run").stdout.split())
    assert "forced by fsync" in shown
    assert "→ -O fast_commit" in shown


@pytest.mark.parametrize("more", [("--profile", "ext4"), ("--at", "1"), ("--by-disk",), ("other",)])
def test_it_is_of_two_profiles_of_one_run(fscost: Run, more: tuple[str, ...]) -> None:
    said = " ".join(
        fscost("explain", "run", "--diff", "ext4", "xfs", *more, check=(2,)).stderr.split()
    )
    assert "--diff compares two profiles of one run" in said


def test_a_folder_that_is_not_there_is_no_profile(fscost: Run) -> None:
    fscost("compare", "-o", "before", "-r", "1", "--lab", "fake", "--on", "ext4", "true")
    said = fscost("explain", "before", "after", "--diff", "ext4", check=(2,)).stderr
    assert "after is neither a run nor a profile of before" in said
    assert "one of ext4" in said


@pytest.mark.root
def test_one_profile_of_two_runs(fscost: Run, tmp_path: Path) -> None:
    """The second run fsyncs a second file of 64 KiB six times: each table names it first."""
    more = COMMAND.replace("sync f$i;", "sync f$i; head -c 65536 /dev/zero >log; sync log;")
    for name, command in (("before", COMMAND), ("after", more)):
        fscost("compare", "-o", name, "-r", "1", "--size", "64M", "--on", "ext4", command)
    found = json.loads(fscost("explain", "before", "after", "--diff", "ext4", "--json").stdout)
    totals = [
        json.loads(fscost("explain", name, "--json").stdout)["recordings"][0]["write_bytes"]
        for name in ("before", "after")
    ]
    assert set(found["tables"]) == {"cause", "structure", "file"}
    for rows in found["tables"].values():
        sums = [sum(r[f"{n}_write_bytes"] for r in rows) for n in ("first", "second")]
        assert sums == totals
    assert found["tables"]["structure"][0]["name"] == "file_data"
    assert found["tables"]["file"][0]["name"] == "/log"
    assert found["title"].startswith("ext4: after wrote ")
    assert "file /log +" in found["title"]
    # By one grouping, and in the other order. Runs are named by their folders, without the path.
    paths = (str(tmp_path / name) for name in ("after", "before"))
    text = fscost("explain", *paths, "--diff", "ext4", "--by", "file").stdout
    assert text.startswith("ext4: before wrote ")
    assert " less than after (" in text


def test_json_has_all_groups_and_the_terminal_the_largest(fscost: Run, tmp_path: Path) -> None:
    for name in ("before", "after"):
        run_of(tmp_path / name, "r")
        shutil.copy(EXT4, tmp_path / name / "r")
    diff = ("explain", "before", "after", "--diff", "ext4", "--all")
    for more, by in (((), "file"), (("--by", "file"), "file")):
        rows = json.loads(fscost(*diff, *more, "--json").stdout)["tables"][by]
        assert len(rows) > 20
        assert not any(row["name"].endswith(" more)") for row in rows)
        assert " more)" in fscost(*diff, *more).stdout
    [*_, rest] = json.loads(fscost(*diff, "--top", "2", "--json").stdout)["tables"]["file"]
    assert rest["name"].endswith(" more)")
