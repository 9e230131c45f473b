"""`--setup` and `--cleanup`: commands on this machine, once before and once after a run."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fscost.errors import InputError
from fscost.host import interrupts

STDERR = 2


@contextmanager
def around(
    setup: Sequence[str], cleanup: Sequence[str], say: Callable[[str], None]
) -> Iterator[None]:
    """Run `setup`, then the block, then `cleanup`. `cleanup` runs however the block ends, and if a
    signal ends `setup`, but not if `setup` fails."""
    try:
        try:
            for command in setup:
                _run("--setup", command, say)
        except InputError:
            cleanup = ()
            raise
        yield
    finally:
        for command in cleanup:
            _run("--cleanup", command, say)


def _run(option: str, command: str, say: Callable[[str], None]) -> None:
    """Run a hook with the shell in the caller's folder. Its output goes to standard error, so that
    it does not mix with tables."""
    if not command.strip() or "\0" in command:
        raise InputError(f"{option} {command!r} is not a command", "give a shell command")
    say(f"{option} {command}")
    shell = ["/bin/sh", "-c", command]
    with (
        interrupts.held() as release,
        subprocess.Popen(shell, stdin=subprocess.DEVNULL, stdout=STDERR) as process,
    ):
        try:
            release()
            status = process.wait()
        except BaseException:
            process.kill()
            raise
    if status:
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        raise InputError(f"{option} {command!r} {how}", "see what it printed above")
