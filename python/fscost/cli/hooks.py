"""`--setup` and `--cleanup`: commands on this machine, once before and once after a run."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fscost.errors import InputError
from fscost.view.grid import plain

STDERR = 2


@contextmanager
def around(setup: Sequence[str], cleanup: Sequence[str]) -> Iterator[None]:
    """`setup` now; `cleanup` at the end, however the run ended, but not where `setup` failed."""
    for command in setup:
        _run("--setup", command)
    try:
        yield
    finally:
        for command in cleanup:
            _run("--cleanup", command)


def _run(option: str, command: str) -> None:
    """By the shell, in the caller's folder; its output goes to standard error, apart from tables."""
    if not command.strip() or "\0" in command:
        raise InputError(f"{option} {command!r} is not a command", "give a shell command")
    print(plain(f"{option} {command}"), file=sys.stderr, flush=True)
    ended = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=STDERR)
    if ended.returncode:
        how = (
            f"was ended by signal {-ended.returncode}"
            if ended.returncode < 0
            else f"exited with status {ended.returncode}"
        )
        raise InputError(f"{option} {command!r} {how}", "see what it printed above")
