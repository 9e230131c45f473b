"""Each fault of a database after a power cut is flagged, and nothing else is."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fscost.crash import kept, sqlite
from fscost.crash.sqlite import DATABASE, broken
from fscost.crash.workloads import WORKLOADS

ROUNDS = 3
TRANSACTIONS = 4 * ROUNDS
Break = Callable[[Path], object]


@pytest.fixture(params=[name for name in WORKLOADS if name.startswith("sqlite")])
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the whole workload ran."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kept, "PAUSE_S", 0)
    journal, synchronous = WORKLOADS[request.param].arguments
    sqlite.prepare(journal, synchronous)
    sqlite.run(journal, synchronous, ROUNDS)
    return tmp_path


def flaws(folder: Path, kept: int) -> list[tuple[str, str]]:
    return list(broken(folder, {"transaction": kept}))


def test_an_intact_database_breaks_nothing(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert flaws(made, TRANSACTIONS) == []
    assert flaws(made, TRANSACTIONS - 1) == []
    assert list(broken(made, {})) == []


def test_each_commit_is_a_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kept, "PAUSE_S", 0)
    sqlite.prepare("WAL", "FULL")
    sqlite.run("WAL", "FULL", 1)
    said = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert [(words[0], *words[2:]) for words in said] == [
        ("kept", "transaction", str(number)) for number in range(1, 5)
    ]


def statement(text: str) -> Break:
    def change(folder: Path) -> None:
        with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as database:
            database.execute(text)

    return change


def damage(folder: Path) -> None:
    with (folder / DATABASE).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize(
    ("change", "kind", "place"),
    [
        (lambda made: (made / DATABASE).unlink(), "lost", "app.db (No such file"),
        (lambda made: (made / DATABASE).write_bytes(b""), "damaged", "app.db (no such table"),
        (
            lambda made: (made / DATABASE).write_bytes(b"x" * 9000),
            "damaged",
            "app.db (file is not a database",
        ),
        (damage, "damaged", "app.db ("),
        (
            statement(f"DELETE FROM entries WHERE number = {TRANSACTIONS}"),
            "lost",
            f"transaction {TRANSACTIONS} (the newest is {TRANSACTIONS - 1})",
        ),
        (statement("DELETE FROM entries WHERE number = 2"), "torn", "transaction 2"),
        (statement("UPDATE entries SET body = 'x' WHERE number = 3"), "torn", "transaction 3"),
        (
            statement(f"UPDATE slots SET number = 4 WHERE number = {TRANSACTIONS}"),
            "torn",
            f"transaction {TRANSACTIONS} (its update is missing)",
        ),
    ],
)
def test_a_broken_promise_is_flagged(made: Path, change: Break, kind: str, place: str) -> None:
    change(made)
    (found, where), *_ = flaws(made, TRANSACTIONS)
    assert (found, where[: len(place)]) == (kind, place)
