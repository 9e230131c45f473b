"""The workload of a database: SQLite, its transactions, and the check of what a power cut left.

This file runs as a program in a cell (`sqlite.py prepare JOURNAL SYNCHRONOUS`, `sqlite.py run
JOURNAL SYNCHRONOUS N`), where fscost is not importable, and prints a line for each transaction
whose COMMIT has returned.
"""

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from fscost.crash.kept import say_kept

DATABASE, TRANSACTION = "app.db", "transaction"
_SLOTS, _BODY_BYTES = 8, 3000
_CHECKPOINT_PAGES = 12
"""Pages in the write-ahead log at which a checkpoint begins: several occur in a short workload."""
LOST, TORN, DAMAGED = "lost", "torn", "damaged"


def body(number: int) -> bytes:
    """Return the content that a transaction inserts."""
    return (b"transaction %d " % number * _BODY_BYTES)[:_BODY_BYTES]


def _opened(journal: str, synchronous: str) -> sqlite3.Connection:
    found = sqlite3.connect(DATABASE, isolation_level=None)
    found.execute(f"PRAGMA journal_mode = {journal}")
    found.execute(f"PRAGMA synchronous = {synchronous}")
    found.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    return found


def prepare(journal: str, synchronous: str) -> None:
    """Create the database."""
    with closing(_opened(journal, synchronous)) as database:
        database.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, body BLOB)")
        database.execute("CREATE TABLE slots (slot INTEGER PRIMARY KEY, number INTEGER)")
        slots = ((slot, 0) for slot in range(_SLOTS))
        database.executemany("INSERT INTO slots VALUES (?, ?)", slots)
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def run(journal: str, synchronous: str, rounds: int) -> None:
    """Commit transactions that each change two tables."""
    with closing(_opened(journal, synchronous)) as database:
        for number in range(1, 4 * rounds + 1):
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO entries VALUES (?, ?)", (number, body(number)))
            database.execute(
                "UPDATE slots SET number = ? WHERE slot = ?", (number, number % _SLOTS)
            )
            database.execute("COMMIT")
            say_kept(**{TRANSACTION: number})


def broken(folder: Path, kept: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield each broken promise: `lost` (a committed transaction is gone), `torn` (a transaction is
    there in part) or `damaged` (SQLite's own check fails), and the place in words."""
    path = folder / DATABASE
    try:
        path.stat()
    except OSError as error:
        yield LOST, f"{DATABASE} ({error.strerror})"
        return
    try:
        with closing(sqlite3.connect(path)) as database:
            yield from _judged(database, kept.get(TRANSACTION, 0))
    except sqlite3.Error as error:
        yield DAMAGED, f"{DATABASE} ({error})"


def _judged(database: sqlite3.Connection, kept: int) -> Iterator[tuple[str, str]]:
    [found] = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        yield DAMAGED, f"{DATABASE} ({str(found).splitlines()[-1]})"
        return
    entries = dict(database.execute("SELECT number, body FROM entries ORDER BY number"))
    newest = max(entries, default=0)
    if newest < kept:
        yield LOST, f"transaction {kept} (the newest is {newest})"
    slots = dict(database.execute("SELECT slot, number FROM slots"))
    wanted = dict.fromkeys(range(_SLOTS), 0)
    for number in range(1, newest + 1):
        wanted[number % _SLOTS] = number
        if entries.get(number) != body(number):
            yield TORN, f"transaction {number}"
            return
    if slots != wanted:
        yield TORN, f"transaction {newest} (its update is missing)"


def main() -> None:
    """Run as a program: `prepare JOURNAL SYNCHRONOUS N` or `run JOURNAL SYNCHRONOUS N`."""
    _, part, journal, synchronous, *rest = sys.argv
    if part == "prepare":
        prepare(journal, synchronous)
    else:
        run(journal, synchronous, int(rest[0]))
