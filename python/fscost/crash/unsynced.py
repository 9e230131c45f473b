"""The workload that promises nothing: each step writes a record and creates a file, and no call
makes them durable. What a power cut leaves shows how many seconds of work an option may lose.

`main` runs as a program in a cell, without the packages that fscost needs otherwise.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fscost.crash.kept import say_kept
from fscost.crash.promises import DATA_LOST, NAMES_LOST, STALE

STEP_S = 0.25
STEPS = 40
"""Steps of a round: ten seconds."""
STEP, LOG, NAMES = "step", "log", "names"
_RECORD_BYTES = 512


def record(number: int) -> bytes:
    """Return a record of the log."""
    head = f"step {number} ".encode()
    return (head * (_RECORD_BYTES // len(head) + 1))[: _RECORD_BYTES - 1] + b"\n"


def prepare() -> None:
    """Make the log and the folder of the files."""
    Path(LOG).touch()
    Path(NAMES).mkdir()
    for name in (LOG, NAMES, "."):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def run(rounds: int) -> None:
    """Append a record and create an empty file at each step, and keep to the clock: the number of a
    step is its time."""
    begin_s = time.monotonic()
    with Path(LOG).open("ab", buffering=0) as log:
        for number in range(1, rounds * STEPS + 1):
            log.write(record(number))
            Path(NAMES, str(number)).touch()
            say_kept(0, **{STEP: number})
            time.sleep(max(0.0, begin_s + number * STEP_S - time.monotonic()))


def broken(folder: Path, kept: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield how many seconds of work are lost, of the data of a file and of the names of files, and
    `stale` if the log holds other bytes than its records."""
    steps = kept.get(STEP, 0)
    found = _records(folder / LOG)
    records = next((n for n, each in enumerate(found) if each != record(n + 1)), len(found))
    if any(each.strip(b"\0") and each != record(n + 1) for n, each in enumerate(found)):
        yield STALE, LOG
    there = {path.name for path in _files(folder / NAMES)}
    names = next((n for n in range(steps) if str(n + 1) not in there), steps)
    for kind, left in ((DATA_LOST, records), (NAMES_LOST, names)):
        if left < steps:
            yield kind, f"{(steps - left) * STEP_S:g}"


def _records(path: Path) -> list[bytes]:
    try:
        data = path.read_bytes()
    except OSError:
        return []
    return [data[at : at + _RECORD_BYTES] for at in range(0, len(data), _RECORD_BYTES)]


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def main() -> None:
    """Run as a program: `prepare N` or `run N`."""
    prepare() if sys.argv[1] == "prepare" else run(int(sys.argv[2]))
