"""Fewer operations have the same fault, as few as are needed."""

from collections.abc import Collection
from pathlib import Path

import pytest

from fscost.crash import reduce, workloads
from fscost.crash.explore import Exploration, Outcome, Source, State
from fscost.crash.promises import LOST, OPERATIONS
from fscost.crash.reduce import Work
from fscost.errors import InputError

MS = 1_000_000


def outcome(at_ns: int, *broken: tuple[str, str], needs_repair: bool = False) -> Outcome:
    return Outcome(State(at_ns, "none", (), 9), True, True, needs_repair, broken)


def source(workload: str, promises: list[tuple[int, str, int]]) -> Source:
    return Source(Path("r"), workload, "ext4", "", (), promises, 0, 10**9, 0)


TRIPLE = "append A.foo, link A.foo A.bar, truncate A.foo 100, fsync A.foo"


def reduced(work: Work, at: Outcome, needed: Collection[str], rounds: int = 1) -> list[object]:
    """Reduce the work as if these operations, so often, had the fault."""
    tried: list[Work] = []

    def breaks(part: Work) -> bool:
        tried.append(part)
        return set(needed) <= set(part.operations) and part.rounds >= rounds

    less = reduce.reduced(work, at, breaks)
    return [less.workload if less else None, less.rounds if less else 0, len(tried)]


@pytest.mark.parametrize(
    ("needed", "fewest", "trials"),
    [
        ({"link A.foo A.bar"}, "link A.foo A.bar, fsync A.foo", 2),
        (
            {"append A.foo", "truncate A.foo 100"},
            "append A.foo, truncate A.foo 100, fsync A.foo",
            5,
        ),
        ({"append A.foo", "link A.foo A.bar", "truncate A.foo 100"}, TRIPLE, 7),
        ({"mkdir A.new"}, None, 7),
    ],
)
def test_a_sequence_keeps_only_the_calls_that_it_needs(
    needed: set[str], fewest: str | None, trials: int
) -> None:
    found = source("sequences-3", [])
    at = outcome(5, (LOST, f"0012 {TRIPLE}/A/foo, sector 3"))
    work = reduce.whole(found, at)
    assert work is not None
    assert (work.workload, work.count) == (TRIPLE, 4)
    assert reduced(work, at, needed) == [fewest, 1 if fewest else 0, trials]


def test_a_fault_without_a_file_is_about_the_sequence_at_the_cut() -> None:
    known = workloads.sequences_of("sequences", 5)
    found = source("sequences", [(MS * number, "fsync", 9) for number in range(1, 6)])
    for at_ns, place in ((MS // 2, 0), (MS * 5 // 2, 2), (9 * MS, 4)):
        work = reduce.whole(found, outcome(at_ns, needs_repair=True))
        assert work is not None
        assert work.workload == str(known[place])


@pytest.mark.parametrize(
    ("needed", "rounds", "fewest"),
    [
        ({"log"}, 1, ["files: log", 1, 1]),
        ({"log"}, 2, ["files: log", 2, 3]),
        ({"swap"}, 1, ["files: swap", 1, None]),
        ({"spool", "database"}, 3, ["files: spool, database", 4, None]),
        ({"no such"}, 1, [None, 0, None]),
    ],
)
def test_files_keep_only_the_operations_that_they_need(
    needed: set[str], rounds: int, fewest: list[object]
) -> None:
    promises = [(MS * number, "log", number) for number in range(1, 7)]
    # Modification times are no rounds.
    promises += [(at_ns, "log_changed", 10**15) for at_ns, _, _ in promises]
    at = outcome(MS * 7 // 2, (LOST, "log, record 1"))
    work = reduce.whole(source("files", promises), at)
    assert work == Work("files", tuple(OPERATIONS), 4)
    found = reduced(work, at, needed, rounds)
    assert found[:2] == fewest[:2]
    assert found[2] == fewest[2] or fewest[2] is None


def test_other_workloads_have_no_known_operations() -> None:
    at = outcome(5, (LOST, "x"))
    for name in ("sqlite", "command"):
        assert reduce.whole(source(name, []), at) is None


def test_only_the_same_fault_counts() -> None:
    wanted = reduce.fault(outcome(1, (LOST, "log, record 0")))
    repaired, lost = outcome(2, needs_repair=True), outcome(3, (LOST, "config (missing)"))
    assert reduce.found_in(Exploration([repaired, lost], 1, 2), wanted) == 2
    assert reduce.found_in(Exploration([repaired], 1, 1), wanted) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mail", "workload 'mail' is unknown"),
        ("files: log, no", "'no' is no operation of files"),
        ("creat A.bar, fsync A.foo", "is no sequence"),
        ("reboot, fsync A.foo", "'reboot' is no call"),
    ],
)
def test_an_unknown_workload_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        workloads.named(name)


def test_parts_of_workloads_have_names() -> None:
    assert workloads.named("files: log, mail").arguments == ("log", "mail")
    assert workloads.operations("files: log, mail") == ("log", "mail")
    assert workloads.named(TRIPLE).arguments == (TRIPLE,)
    assert workloads.operations(TRIPLE) is None
    assert workloads.is_sequences(TRIPLE)
