"""Arrays of md below a file system: what assembles them after a power cut, in a guest.

Only the standard library is imported here: a guest loads this over a slow share.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

DEVICE = Path("/dev/md0")
_STATE = Path("/sys/block/md0/md/array_state")
"""Does not exist, or says `clear`, if there is no array (admin-guide/md.rst)."""
PLAIN = ("--run",)
"""As at boot: an array starts without members that are missing or old (mdadm(8), --run)."""
FORCED = ("--run", "--force")
"""Also if an array with parity is dirty and lacks a member (md.rst, "start dirty degraded")."""
Run = Callable[[Sequence[str]], int]
"""Runs a program, and returns its exit status."""


@contextmanager
def assembled(members: Sequence[Path], tries: Sequence[Sequence[str]], run: Run) -> Iterator[int]:
    """Assemble an array until the block ends. Yield the place of the flags that started it among
    those that are tried in turn, or -1 if none did."""
    began = -1
    for place, flags in enumerate(tries):
        # mdadm says what it did on its standard error, also if it succeeds.
        words = ["mdadm", "--assemble", "--config=none", *flags, str(DEVICE)]
        if run([*words, *map(str, members)]) == 0:
            began = place
            break
        _stop(run)
    try:
        yield began
    finally:
        _stop(run)


def _stop(run: Run) -> None:
    """Stop the array. The host changes its members only after that."""
    if _is_there():
        run(["mdadm", "--stop", str(DEVICE)])
    if _is_there():
        raise OSError(f"{DEVICE} does not stop")


def _is_there() -> bool:
    try:
        return _STATE.read_text().strip() != "clear"
    except OSError:
        return False
