"""Examination of states in a guest: the program that runs there (docs/cell-protocol.md).

The host fills the guest's disks, and sends one job a line. Before each use of a disk, the program
asks for its content. It ends when standard input ends.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
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
    """Disks that the host fills. After those of the profile come spare ones."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._disks = [*about["disks"], *about.get("spares", ())]
        self._count = len(about["disks"])

    def disk(self, number: int, _job: Mapping[str, Any]) -> AbstractContextManager[Path]:
        return self._asked("disk", number)

    def blank(self, name: str, number: int) -> AbstractContextManager[Path]:
        own = self._disks[number]
        if name == own["name"]:
            return self._asked("blank", number)
        same = ("size_bytes", "sector_bytes")
        places = range(self._count, len(self._disks))
        alike = (at for at in places if all(self._disks[at][key] == own[key] for key in same))
        return self._asked("blank", next(alike))

    @contextmanager
    def _asked(self, what: str, number: int) -> Iterator[Path]:
        _tell({what: number})
        sys.stdin.readline()
        yield _DEVICES / str(self._disks[number]["name"])


class _Marks:
    """The recording of a recovery, which the host marks."""

    def begin(self, _devices: Sequence[Path | None]) -> None:
        self._mark("mount")

    def end(self) -> None:
        self._mark("end")

    def _mark(self, name: str) -> None:
        _tell({"mark": name})
        sys.stdin.readline()


def main() -> None:
    """Answer jobs."""
    # A kernel that went on after an oops could fail later states for the wrong reason.
    _PANIC_ON_OOPS.write_text("1")
    about = json.loads(sys.stdin.readline())
    _ROOT.mkdir()
    examiner = Examiner(about, _Given(about), _ROOT)
    _tell({"ready": True})
    for line in sys.stdin:
        job = json.loads(line)
        if "again" in job:
            examiner.recover(job, _Marks())
            _tell({"answer": {}})
        else:
            _tell({"answer": examiner.answer(job)})
