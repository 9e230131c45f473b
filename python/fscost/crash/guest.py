"""Examination of states in a guest: the program that runs there (docs/cell-protocol.md).

The host fills the guest's disks, and sends one job a line. Before each use of a disk, the program
asks for its content. It ends when standard input ends.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from fscost.crash.examination import Examiner

_ROOT = Path("/run/fscost/root")
_DEVICES = Path("/dev/fscost")
_PANIC_ON_OOPS = Path("/proc/sys/kernel/panic_on_oops")


def _tell(value: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()


class _Given:
    """Disks that the host fills."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._names = [str(disk["name"]) for disk in about["disks"]]

    @contextmanager
    def disk(self, number: int, _job: Mapping[str, Any]) -> Iterator[Path]:
        _tell({"disk": number})
        sys.stdin.readline()
        yield _DEVICES / self._names[number]

    def blank(self, name: str, number: int) -> AbstractContextManager[Path]:
        raise NotImplementedError(f"{name}: a guest has no new disk ({number})")


def main() -> None:
    """Answer jobs."""
    # A kernel that went on after an oops could fail later states for the wrong reason.
    _PANIC_ON_OOPS.write_text("1")
    about = json.loads(sys.stdin.readline())
    _ROOT.mkdir()
    examiner = Examiner(about, _Given(about), _ROOT)
    _tell({"ready": True})
    for line in sys.stdin:
        _tell({"answer": examiner.answer(json.loads(line))})
