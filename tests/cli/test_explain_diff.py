"""`fscost explain --diff`: the groups of a difference add up to it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
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
    said = fscost("explain", "run", "--diff", "ext4", "xfs", *more, check=(2,)).stderr
    assert "--diff compares two profiles of one run" in said
