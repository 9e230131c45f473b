"""Calls for durability, and the commits that they forced."""

from itertools import pairwise
from typing import Any

import pytest

from fscost.analyze import By, groups, journal
from fscost.analyze.explain import Explanation, Mark
from fscost.analyze.fsyncs import Forcing
from fscost.errors import InputError

from .made import BLOCK, S, commit, explanation, row

MS = 10**6
HOMES = [("inode_table", 5)]
"""What each commit copies: with its descriptor and its commit block, 3 blocks."""


def marks(calls: list[tuple[int, int, int]], **more: Any) -> list[Mark]:
    """Marks of one phase with calls: each begins at a time, takes a time and has a caller, of a
    (inode 12) or b (13)."""
    times = [0, *(at_ns // 1000 for at_ns, _, _ in calls)]
    callers = [
        {"process": 7, "name": name, "inode": inode} for name, inode in (("a", 12), ("b", 13))
    ]
    noted = {
        "count": len(calls),
        "after_us": [after - before for before, after in pairwise(times)],
        "took_us": [took_ns // 1000 for _, took_ns, _ in calls],
        "caller": [caller for _, _, caller in calls],
        "callers": callers,
    }
    return [Mark(0, "work"), Mark(100 * S, "end", {"sync_calls": noted, **more})]


def whole(calls: list[tuple[int, int, int]], *commits: list[dict[str, Any]]) -> Explanation:
    files = [
        row("file_data", inode=inode, path=path, time_ns=MS)
        for inode, path in ((12, "/a"), (13, "/b"))
    ]
    rows = [*files, *(each for several in commits for each in several)]
    return explanation(rows, marks=marks(calls), batches=2)


def forced(of: Explanation) -> list[tuple[str | None, int, int]]:
    found = Forcing(of, journal(of)).fsyncs()
    assert found.is_tied
    return [(call.path, call.commits, call.commit_write_bytes // BLOCK) for call in found.calls]


def test_each_commit_belongs_to_the_call_that_waited_for_it() -> None:
    found = whole(
        [(S, 5 * MS, 0), (S + 6 * MS, 5 * MS, 1), (S + 20 * MS, MS, 0)],
        commit(1, HOMES, S + 2 * MS),
        commit(2, HOMES, S + 8 * MS),
    )
    # The third found everything durable.
    assert forced(found) == [("/a", 1, 3), ("/b", 1, 3), ("/a", 0, 0)]
    charged = Forcing(found, journal(found)).charged()
    names = {group.name: group.bytes // BLOCK for group in groups(charged, By.FILE)}
    assert names == {"/a": 4, "/b": 4}
    assert {group.name for group in groups(found, By.FILE)} == {"/a", "/b", "(of no single file)"}


def test_calls_that_join_a_commit_did_not_force_it() -> None:
    found = whole(
        [(S, 5 * MS, 0), (S + 1 * MS, 9 * MS, 1), (S + 3 * MS, 1 * MS, 0)],
        commit(1, HOMES, S + 2 * MS),
        # The second call came while the first commit ran, and needed another.
        commit(2, HOMES, S + 6 * MS),
    )
    assert forced(found) == [("/a", 1, 3), ("/b", 1, 3), ("/a", 0, 0)]


def test_a_call_of_unknown_duration_may_wait_until_the_next() -> None:
    """As an O_SYNC write does."""
    found = whole(
        [(S, 0, 0), (S + 6 * MS, 0, 1)],
        commit(1, HOMES, S + 2 * MS),
        commit(2, HOMES, S + 8 * MS),
    )
    assert forced(found) == [("/a", 1, 3), ("/b", 1, 3)]


def test_a_commit_that_had_begun_was_not_forced() -> None:
    found = whole([(S, 5 * MS, 0)], commit(1, HOMES, S - MS // 2), commit(2, HOMES, 50 * S))
    assert forced(found) == [("/a", 0, 0)]


@pytest.mark.parametrize(
    "calls",
    [
        {"count": "x", "after_us": [5], "took_us": ["y"], "caller": ["z"], "callers": "w"},
        {"count": -1, "after_us": [5], "took_us": [-3], "caller": [7], "callers": [3]},
        {"after_us": [5], "caller": [0], "callers": [{"inode": 1 << 70, "process": -1, "name": 4}]},
        {"after_us": [5], "took_us": 3},
    ],
)
def test_the_calls_of_a_recording_are_not_trusted(calls: dict[str, Any]) -> None:
    of = explanation(
        [row("file_data", inode=12, path="/a"), *commit(1, HOMES, S)],
        marks=[Mark(0, "work"), Mark(9 * S, "end", {"sync_calls": calls})],
    )
    [call] = Forcing(of, journal(of)).fsyncs().calls
    assert (call.inode, call.path, call.process, call.name) == (None, None, None, None)


def test_an_emulated_guest_has_another_clock() -> None:
    of = explanation(
        [row("file_data", inode=12, path="/a"), *commit(1, HOMES, S)],
        marks=marks([(S - MS, 9 * MS, 0)], virtual_ns=5),
    )
    forcing = Forcing(of, journal(of))
    found = forcing.fsyncs()
    assert not found.is_tied
    assert [(call.path, call.commit_write_bytes) for call in found.calls] == [("/a", 0)]
    with pytest.raises(InputError, match="emulated"):
        forcing.charged()
