"""The workload of a database server: PostgreSQL, its transactions, and its own crash recovery.

This file runs as a program in a cell, without the packages that fscost needs otherwise, and prints
a line for each transaction that was committed. It uses PostgreSQL's single-user mode (postgres(1)),
which commits and recovers as the server does, and needs neither a socket nor other processes.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from fscost.crash import mounting
from fscost.crash.kept import say_kept
from fscost.crash.promises import LOST, TORN
from fscost.crash.sqlite import DAMAGED

DATA, TRANSACTION = "data", "transaction"
_BINARIES = Path("/usr/lib/postgresql")
_NOBODY = 65534
"""PostgreSQL refuses to run as root."""
_AS_NOBODY: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
_SLOTS, _BODY_WORDS, _CHECKPOINT = 8, 600, 6
"""Every sixth transaction is followed by a checkpoint."""
_PROMPT = b"backend> "
_PLACE = "/mnt"
"""Where a state is mounted for nobody, who may not reach its own place (hier(7))."""
_LIMIT_S = 60
_ANSWER = re.compile(r'told = "([\d,]*)"')
_NUMBERS = "string_agg(number::text, ','"
_WHOLE = f"WHERE body = repeat(number::text || ' ', {_BODY_WORDS})"
_QUERIES = (
    f"SELECT coalesce({_NUMBERS} ORDER BY number), '') AS told FROM entries {_WHOLE}",
    f"SELECT {_NUMBERS} ORDER BY slot) AS told FROM slots",
    "SELECT count(*)::text AS told FROM entries",
)
_MADE = (
    "CREATE TABLE entries (number integer PRIMARY KEY, body text)",
    "CREATE TABLE slots (slot integer PRIMARY KEY, number integer)",
    f"INSERT INTO slots SELECT slot, 0 FROM generate_series(0, {_SLOTS - 1}) AS slot",
)


def _binary(name: str) -> str:
    """Return a program of the newest server."""
    if not (found := sorted(_BINARIES.glob(f"*/bin/{name}"))):
        sys.exit(f"{name} is missing: apt install postgresql")
    return str(found[-1])


def _single(folder: Path, *options: str) -> list[str]:
    return [_binary("postgres"), "--single", *options, "-D", str(folder / DATA), "postgres"]


def _told(output: IO[bytes]) -> str:
    """Return what the server says up to its next prompt."""
    said = b""
    while not said.endswith(_PROMPT):
        if not (more := output.read(1)):
            raise RuntimeError(f"the server ended: {said.decode(errors='replace')}")
        said += more
    if b"ERROR:" in said:
        raise RuntimeError(said.decode(errors="replace"))
    return said.decode(errors="replace")


class _Server:
    """A running server. The end of the block kills it, unless it was stopped."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            _single(Path.cwd()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            **_AS_NOBODY,
        )
        self._next()

    def __enter__(self) -> "_Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, statement: str) -> None:
        """Run a statement. Its transaction is committed when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{statement}\n".encode())
        self._next()

    def stop(self) -> None:
        """Let the server write everything, and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait(_LIMIT_S) != 0:
            raise RuntimeError("the server did not end as it should")

    def _next(self) -> None:
        assert self._process.stdout is not None
        _told(self._process.stdout)


def prepare() -> None:
    """Make the database cluster and its tables."""
    data = Path.cwd() / DATA
    data.parent.chmod(0o711)
    data.mkdir()
    os.chown(data, _NOBODY, _NOBODY)
    words = [_binary("initdb"), "-U", "postgres", "-A", "trust", "-D", str(data)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **_AS_NOBODY)
    with _Server() as server:
        for statement in _MADE:
            server.ask(statement)
        server.stop()
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def run(rounds: int) -> None:
    """Commit transactions that each change two tables."""
    with _Server() as server:
        for number in range(1, 4 * rounds + 1):
            server.ask(
                f"WITH moved AS (UPDATE slots SET number = {number} WHERE slot = {number % _SLOTS})"
                f" INSERT INTO entries VALUES ({number}, repeat('{number} ', {_BODY_WORDS}))"
            )
            say_kept(**{TRANSACTION: number})
            if number % _CHECKPOINT == 0:
                server.ask("CHECKPOINT")


def broken(folder: Path, kept: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield each broken promise: `lost` (a committed transaction is gone), `torn` (a transaction is
    there in part) or `damaged` (PostgreSQL does not recover, or finds an error), and the place in
    words. The server recovers the state as it would after a power cut."""
    try:
        with mounting.bound(folder, _PLACE):
            # -F: what the recovery writes need not survive.
            done = subprocess.run(
                _single(Path(_PLACE), "-F"),
                input="".join(f"{query}\n" for query in _QUERIES),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd="/",
                text=True,
                errors="replace",
                timeout=_LIMIT_S,
                check=False,
                **_AS_NOBODY,
            )
    except subprocess.TimeoutExpired:
        yield DAMAGED, f"{DATA} (no answer within {_LIMIT_S} s)"
        return
    answers = _ANSWER.findall(done.stdout)
    if done.returncode or len(answers) < len(_QUERIES):
        yield DAMAGED, f"{DATA} ({_why(done.stdout)})"
        return
    whole, slots, [count] = ([int(each) for each in told.split(",") if each] for told in answers)
    yield from _judged(whole, slots, count, kept.get(TRANSACTION, 0))


def _why(said: str) -> str:
    """Return the server's own words on what is wrong."""
    lines = [line for line in said.splitlines() if re.search("PANIC|FATAL|ERROR|postgres: ", line)]
    return re.sub(r"^.*?(PANIC|FATAL|ERROR): *", "", lines[0]) if lines else "no answer"


def _judged(whole: list[int], slots: list[int], count: int, kept: int) -> Iterator[tuple[str, str]]:
    """Judge the numbers of the entries that are whole, those of the slots, and the number of
    entries."""
    newest = max(whole, default=0)
    if newest < kept:
        yield LOST, f"transaction {kept} (the newest is {newest})"
    if whole != list(range(1, newest + 1)) or count != len(whole):
        number = next((n for n, each in enumerate(whole, start=1) if n != each), newest + 1)
        yield TORN, f"transaction {number}"
    elif slots != [max(range(slot, newest + 1, _SLOTS), default=0) for slot in range(_SLOTS)]:
        yield TORN, f"transaction {newest} (its update is missing)"


def main() -> None:
    """Run as a program: `prepare N` or `run N`."""
    prepare() if sys.argv[1] == "prepare" else run(int(sys.argv[2]))
