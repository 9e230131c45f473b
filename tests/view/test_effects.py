"""Sentences about options that change nothing, kernels, and workloads of a suite."""

from pathlib import Path
from typing import Any

import pytest
from tests import manifests

from fscost.results import METRICS, CellRecord, RunResults, to_table, written
from fscost.results.table import SampleRow, with_totals
from fscost.view.per import Per
from fscost.view.relation import within
from fscost.view.run import view

KIB = 1024
WRITTEN = "device_write_bytes"
NAND = "nand_write_bytes"


def a_run(
    values: dict[str, dict[str, list[float]]],
    profiles: dict[str, dict[str, Any]],
    facts: dict[str, dict[str, Any]],
) -> RunResults:
    """Return a run: values by profile and metric, and the facts of each profile's cells."""
    rows: list[SampleRow] = []
    cells = []
    for profile, metrics in values.items():
        for repetition in range(len(metrics[WRITTEN])):
            name = f"{profile}.{repetition}"
            about = (name, profile, repetition, 0, 0, "run", True, "")
            rows += with_totals(
                [
                    SampleRow(*about, metric, METRICS[metric].unit, found[repetition])
                    for metric, found in metrics.items()
                ]
            )
            cells.append(
                CellRecord(
                    name,
                    profile,
                    repetition,
                    0,
                    0,
                    "done",
                    1.0,
                    *[""] * 4,
                    facts.get(profile, {}) if repetition == 0 else {},
                )
            )
    manifest = manifests.made(
        profiles=[{"name": name, "type": "ext4", **profiles.get(name, {})} for name in values],
        stopping={"metric": WRITTEN},
        baseline=next(iter(values)),
        cells=cells,
    )
    return RunResults(Path("folder"), manifest, to_table(rows))


LATE = "ext4 -o commit=30"


def with_commits(
    forced: int, timer: int, settle: int, its_timer: int = 0, share: float = 1.0, n: int = 2
) -> RunResults:
    counts = {"forced": forced, "timer": timer, "settle": settle, "other": 0}
    return a_run(
        {"ext4": {WRITTEN: [KIB] * n}, LATE: {WRITTEN: [share * KIB] * n}},
        {"ext4": {"mount_options": ""}, LATE: {"mount_options": "commit=30"}},
        {"ext4": {"commits": counts | {"timer": its_timer}}, LATE: {"commits": counts}},
    )


@pytest.mark.parametrize(
    ("late", "calls", "is_said"), [(60, 60, True), (61, 60, False), (60, 10, False)]
)
def test_as_many_commits_in_an_emulated_guest_say_why(late: int, calls: int, is_said: bool) -> None:
    """Its recording does not show which call forced a commit."""
    same = {WRITTEN: [float(KIB)], "sync_calls": [float(calls)]}
    run = a_run(
        {"ext4": same, LATE: same},
        {"ext4": {"mount_options": ""}, LATE: {"mount_options": "commit=30"}},
        {"ext4": {"commits": {"untold": 60}}, LATE: {"commits": {"untold": late}}},
    )
    said = (
        f"{LATE}: as many commits as ext4, 60, for 60 calls of fsync, so commit= changes nothing"
        " here."
    )
    assert (said in view(run).why) == is_said


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((60, 0, 0), "all 60 commits were forced by fsync"),
        ((0, 0, 1), "its only commit was at the end of a phase"),
        (
            (57, 0, 1),
            ("the timer made none of its 58 commits (57 forced by fsync, 1 at the end of a phase)"),
        ),
    ],
)
def test_the_commit_interval_without_the_timers_commits_changes_nothing(
    counts: tuple[int, int, int], words: str
) -> None:
    assert view(with_commits(*counts)).why[0] == f"{LATE}: {words}, so commit= changes nothing."


def test_a_commit_of_the_timer_or_unknown_counts_say_nothing() -> None:
    assert not any("changes nothing" in line for line in view(with_commits(57, 1, 0)).why)
    run = with_commits(57, 0, 0)
    for cell in run.manifest.cells:
        cell.facts.update(commits={"forced": "57", "timer": None})
    assert not any("changes nothing" in line for line in view(run).why)


@pytest.mark.parametrize(("its_timer", "share", "n"), [(6, 1.0, 2), (6, 0.5, 1), (0, 0.5, 1)])
def test_an_option_that_changed_something_is_not_said_to_change_nothing(
    its_timer: int, share: float, n: int
) -> None:
    """The timer commits less often because of it; one repetition has no interval."""
    run = with_commits(0, 0, 1, its_timer, share, n)
    assert not any("changes nothing" in line for line in view(run).why)


def test_a_profile_that_differs_in_more_than_the_option_is_not_judged() -> None:
    run = with_commits(60, 0, 0)
    run.manifest.profiles[1]["mkfs_flags"] = ["-b", "1024"]
    assert not any("changes nothing" in line for line in view(run).why)


@pytest.mark.parametrize("atime", [0.0, 4096.0])
def test_noatime_changes_nothing_where_no_access_time_was_written(atime: float) -> None:
    name = "ext4 -o noatime"
    found = a_run(
        {
            "ext4": {WRITTEN: [KIB, KIB], written.ATIME: [atime, atime]},
            name: {WRITTEN: [KIB, KIB], written.ATIME: [0.0, 0.0]},
        },
        {"ext4": {"mount_options": ""}, name: {"mount_options": "noatime"}},
        {},
    )
    told = f"{name}: neither it nor ext4 wrote any access times, so noatime changes nothing here."
    assert (told in view(found).why) == (not atime)


@pytest.mark.parametrize("nand", [180.0, 60.0])
def test_fewer_bytes_that_wear_more_are_named(nand: float) -> None:
    name = "ext4 -O ^has_journal"
    found = a_run(
        {
            "ext4": {WRITTEN: [KIB, KIB], NAND: [100 * KIB, 100 * KIB]},
            name: {WRITTEN: [KIB / 2, KIB / 2], NAND: [nand * KIB, nand * KIB]},
        },
        {},
        {},
    )
    told = [line for line in view(found).why if "wears out sooner" in line]
    assert bool(told) == (nand > 100)
    assert all(
        "0.50× the bytes of ext4, but they cost 1.80× the NAND bytes" in each for each in told
    )


def test_each_profile_is_compared_with_itself_under_the_first_kernel() -> None:
    values = {"ext4": (100, 100), "xfs": (300, 200)}
    found = a_run(
        {
            f"{name} @{kernel}": {WRITTEN: [each * KIB] * 2}
            for name, sizes in values.items()
            for kernel, each in zip(("6.1", "6.12"), sizes, strict=True)
        },
        {f"{name} @{kernel}": {"kernel": kernel} for name in values for kernel in ("6.1", "6.12")},
        {},
    )
    shown = view(found).kernels
    assert shown is not None
    assert shown.title == "Written, by kernel"
    assert view(found).headline.endswith(" Kernel 6.12 against 6.1: xfs −33 %, the other ≈.")
    assert list(map(list, shown.rows)) == [
        ["ext4", "100 KiB", "100 KiB", "≈"],
        ["xfs", "300 KiB", "200 KiB", "−33 %"],
    ]


def test_one_kernel_needs_no_table_of_kernels() -> None:
    found = a_run({"ext4": {WRITTEN: [KIB]}}, {"ext4": {"kernel": "6.12"}}, {})
    assert view(found).kernels is None


def test_the_workloads_of_a_suite_are_not_compared_with_each_other() -> None:
    runs = {
        "log": a_run({"ext4": {WRITTEN: [20 * KIB] * 2}, "xfs": {WRITTEN: [10 * KIB] * 2}}, {}, {}),
        "copy": a_run({"ext4": {WRITTEN: [8 * KIB] * 2}, "xfs": {WRITTEN: [8 * KIB] * 2}}, {}, {}),
    }
    found = within(runs, WRITTEN, {"log": Per(10, "record"), "copy": None})
    assert list(map(list, found.grid.rows)) == [
        ["log, per record", "2.00 KiB", "1.00 KiB", "−50 %"],
        ["copy", "8.00 KiB", "8.00 KiB", "≈"],
    ]
    assert found.grid.header == ("workload", "ext4", "xfs", "xfs vs ext4")
    assert [row.get("ratio") for row in found.rows] == [None, 0.5, None, 1.0]


def test_ranges_of_wear_are_told() -> None:
    """The range was compared with a metric that no run has, so that no run told it."""
    one = {WRITTEN: [1e6], NAND: [1e6]}
    other = {WRITTEN: [1e6], NAND: [2e6], "exact_nand_write_bytes": [9e5]}
    other["roaming_nand_write_bytes"] = [7e6]
    legend = " ".join(view(a_run({"ext4": one, "xfs": other}, {}, {})).legend)
    assert "xfs: Assumed" in legend
    assert "2.00 to 7.00" in legend
    assert "0.90 instead of 2.00" in legend
    assert "ext4: Assumed" not in legend


@pytest.mark.parametrize(
    ("second", "command_s", "settled", "is_said"),
    [
        ({"type": "xfs"}, 1.0, 0.99, True),
        ({"mount_options": "lazytime"}, 1.0, 0.99, True),
        ({"mkfs_flags": ["-O", "^has_journal"]}, 1.0, 0.99, True),
        # Times alone do not depend on a timer.
        ({"mount_options": "noatime"}, 1.0, 0.99, False),
        # A commit by a call or a timer falls into the command.
        ({"type": "xfs"}, 1.0, 0.5, False),
        ({"type": "xfs"}, 6.0, 0.99, False),
    ],
)
def test_a_run_that_only_its_sync_wrote_is_cautioned(
    second: dict[str, Any], command_s: float, settled: float, is_said: bool
) -> None:
    metrics = {
        WRITTEN: [100 * KIB] * 2,
        "settle_write_bytes": [settled * 100 * KIB] * 2,
        "command_s": [command_s] * 2,
    }
    found = a_run({"first": metrics, "second": metrics}, {"second": second}, {})
    cautions = [line for line in view(found).cautions if "before any timer" in line]
    expected = (
        "The command ended after 1.00 s, before any timer (ext: 5 s, others: 30 s): at least 99 %"
        " of the bytes are those of the sync and the unmount after it. A longer workload shows what"
        " the timers write."
    )
    assert cautions == ([expected] if is_said else [])
    found.manifest.request["workload"] = "small-files"
    assert not [line for line in view(found).cautions if "before any timer" in line]
