"""PostgreSQL's transactions: what is found in a database, and what the server says of a bad one."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fscost.crash import postgresql
from fscost.crash.postgresql import _judged, broken

SLOTS_AT_9 = [8, 9, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("whole", "slots", "count", "kept", "faults"),
    [
        (range(1, 10), SLOTS_AT_9, 9, 9, []),
        # The next one was on its way.
        (range(1, 10), SLOTS_AT_9, 9, 8, []),
        ([], [0] * 8, 0, 0, []),
        (range(1, 10), SLOTS_AT_9, 9, 10, [("lost", "transaction 10 (the newest is 9)")]),
        ([1, 2, 4], [0, 1, 2, 3, 4, 0, 0, 0], 3, 4, [("torn", "transaction 3")]),
        # An entry whose body is another one is not whole.
        ([1, 2], [0, 1, 2, 0, 0, 0, 0, 0], 3, 2, [("torn", "transaction 3")]),
        ([1, 2], [0, 1, 0, 0, 0, 0, 0, 0], 2, 2, [("torn", "transaction 2 (its update is")]),
        ([], [], 0, 1, [("lost", "transaction 1 (the newest is 0)"), ("torn", "transaction 0 (")]),
    ],
)
def test_each_fault_is_flagged(
    whole: list[int], slots: list[int], count: int, kept: int, faults: list[tuple[str, str]]
) -> None:
    found = list(_judged(list(whole), slots, count, kept))
    assert [kind for kind, _ in found] == [kind for kind, _ in faults]
    for (_, where), (_, start) in zip(found, faults, strict=True):
        assert where.startswith(start)


def unmounted(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def bound(folder: Path, place: str) -> Iterator[None]:
        yield

    monkeypatch.setattr(postgresql.mounting, "bound", bound)
    monkeypatch.setattr(postgresql, "_single", lambda folder, *options: [])


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ('\t 1: told = "1,2"\n', 0, "data (no answer)"),
        (
            "2026-11-29 UTC [7] PANIC:  could not locate a valid checkpoint record\n",
            1,
            "data (could not locate a valid checkpoint record)",
        ),
        ('postgres: could not access directory "/mnt/data"\n', 2, "data (postgres: could not"),
        ('told = "1"\ntold = "1"\ntold = "1"\n', -6, "data (no answer)"),
    ],
)
def test_a_server_that_does_not_answer_has_a_bad_database(
    said: str, code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unmounted(monkeypatch)
    done = subprocess.CompletedProcess([], code, said)
    monkeypatch.setattr(subprocess, "run", lambda words, **how: done)
    [(kind, where)] = broken(Path(), {"transaction": 1})
    assert (kind, where[: len(words)]) == ("damaged", words)


def test_a_server_that_hangs_has_a_bad_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(words: list[str], **how: float) -> None:
        raise subprocess.TimeoutExpired(words, how["timeout"])

    unmounted(monkeypatch)
    monkeypatch.setattr(subprocess, "run", hang)
    assert list(broken(Path(), {})) == [("damaged", "data (no answer within 60 s)")]
