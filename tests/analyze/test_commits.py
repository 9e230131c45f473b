"""Reasons for commits: from recorded sync calls, and from the pattern if no calls were recorded."""

from typing import Any

import numpy as np
import pytest

from fscost.analyze.commits import Why, reasons
from fscost.analyze.explain import Mark

S = 10**9
MS = 10**6
FORCED, TIMER, SETTLE, OTHER = Why.FORCED, Why.TIMER, Why.SETTLE, Why.OTHER


def marks(*calls: tuple[dict[str, Any] | None, ...] | dict[str, Any] | None) -> list[Mark]:
    """Return phases of 100 s: `work` and so on. Each has one of `calls`, recorded in the mark that
    ends it."""
    details = [{}] + [{} if each is None else {"sync_calls": each} for each in calls]
    return [Mark(100 * S * number, f"m{number}", detail) for number, detail in enumerate(details)]


def why(
    begins_ns: list[int], *calls: Any, family: str = "ext", took_ns: int = 2 * MS
) -> tuple[list[Why], bool]:
    begin = np.array(begins_ns, np.int64)
    found = reasons(family, begin, begin + took_ns, marks(*calls), True)
    return list(found.why), found.inferred


def heard(*times_ns: int, count: int | None = None) -> dict[str, Any]:
    differences = np.diff([0, *times_ns]) // 1000
    return {
        "count": len(times_ns) if count is None else count,
        "after_us": [int(each) for each in differences],
    }


def test_a_pattern_tells_early_from_late() -> None:
    # One commit comes 2 s after the beginning of its phase, another 1 s later; then the timer's;
    # then the last.
    assert why([2 * S, 3 * S, 9 * S, 20 * S], None) == ([FORCED, FORCED, TIMER, SETTLE], True)
    assert why([2 * S, 23 * S, 60 * S, 80 * S], None, family="xfs") == (
        [FORCED, FORCED, TIMER, SETTLE],
        True,
    )


@pytest.mark.parametrize(("family", "period_s"), [("ext", 5), ("xfs", 30), ("btrfs", 30)])
def test_a_timer_may_come_a_second_early(family: str, period_s: int) -> None:
    least = (period_s - 1) * S
    assert why([least, 2 * least, 3 * least - MS, 99 * S], None, family=family) == (
        [TIMER, TIMER, FORCED, SETTLE],
        True,
    )


@pytest.mark.parametrize(
    ("told", "third"),
    [
        (30, FORCED),
        (None, TIMER),
        (0, TIMER),
        (-1, TIMER),
        ("30", TIMER),
        (True, TIMER),
        (1 << 70, TIMER),
    ],
)
def test_a_mount_option_sets_the_timer(told: object, third: Why) -> None:
    """A mark may hold any value, because it comes with the recording."""
    begin = np.array([2 * S, 3 * S, 9 * S, 60 * S, 70 * S], np.int64)
    noted = [
        Mark(mark.at_ns, mark.name, mark.detail | ({} if told is None else {"commit_s": told}))
        for mark in marks(None)
    ]
    found = reasons("ext", begin, begin + MS, noted, True)
    assert list(found.why) == [FORCED, FORCED, third, TIMER, SETTLE]


def test_a_timer_runs_from_the_transaction_before_or_from_the_phase() -> None:
    found, _ = why([50 * S, 102 * S, 150 * S], None, None)
    assert found == [SETTLE, FORCED, SETTLE]


def test_calls_that_were_heard_tell_for_certain() -> None:
    calls = heard(8 * S - MS, 10 * S - MS)
    assert why([2 * S, 8 * S, 10 * S, 15 * S, 30 * S], calls) == (
        [OTHER, FORCED, FORCED, TIMER, SETTLE],
        False,
    )


def test_calls_that_needed_no_commit_force_none() -> None:
    """Calls that needed no commit force none: a program overwrites and calls fdatasync all the
    time; the timer commits its mtimes every five seconds."""
    calls = heard(*(number * 10 * MS for number in range(1, 2000)))
    assert why([5 * S, 10 * S, 15 * S, 20 * S], calls) == ([TIMER, TIMER, TIMER, SETTLE], False)


def test_what_a_mark_could_not_hold_is_inferred() -> None:
    found, inferred = why([S, 2 * S, 3 * S, 60 * S], heard(S - MS, 2 * S + 3 * MS, count=9))
    assert (found, inferred) == ([FORCED, OTHER, FORCED, SETTLE], True)


@pytest.mark.parametrize(
    "noted",
    [
        [],
        7,
        {"count": 1},
        {"count": 1, "after_us": "x"},
        {"count": 1, "after_us": [-1]},
        {"count": 1, "after_us": [1 << 99]},
        {"count": 1, "after_us": [True]},
    ],
)
def test_what_makes_no_sense_is_as_if_it_were_not_there(noted: Any) -> None:
    assert why([2 * S, 50 * S], noted) == ([FORCED, SETTLE], True)


def test_calls_of_btrfs_are_served_by_log_trees() -> None:
    assert why([40 * S, 99 * S], heard(40 * S - MS, 50 * S), family="btrfs") == (
        [TIMER, SETTLE],
        True,
    )


def test_without_times_nothing_is_said() -> None:
    times = np.array([1, 2], np.int64)
    assert list(reasons("ext", times, times, [], False).why) == [Why.UNTOLD] * 2


def test_a_program_that_syncs_all_the_time() -> None:
    """Each call comes 20 µs before its commit begins, and a commit takes 25 µs: no call may be
    matched with another commit."""
    begins = np.cumsum(np.random.default_rng(7).integers(70, 200, 500)) * 1000 + S
    calls = begins - 20_000
    found, inferred = why([*begins.tolist(), 90 * S], heard(*calls.tolist()), took_ns=25_000)
    assert (found, inferred) == ([FORCED] * 500 + [SETTLE], False)
