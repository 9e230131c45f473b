"""When the promises of a workload were made.

Natively, the workload's clock is that of its recording. A guest has another clock: its workload
says what the disks had completed, and the recording has the same requests, in the same order.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from fscost import capture
from fscost.crash import fsynced
from fscost.crash.workloads import COMMAND, checked
from fscost.errors import InputError

_SECTOR_BYTES = 512
_COUNTED = {"write": 0, "write_zeroes": 0, "discard": 1, "flush": 2}
"""Place of each operation in the counts: sectors written, sectors discarded, flushes."""
_Counts = tuple[int, int, int]
_MARGIN_NS = 2_000_000
"""Time by which a promise must precede a cut. The two clocks run apart by less, and each promise is
followed by a longer pause."""
_CALLS_MARGIN_NS = 200_000
"""The same for calls of any command, whose times come from the clock of the recording."""
_KEPT = re.compile(
    r"^kept (\d{1,19}) (\w{1,20}) (\d{1,18})((?: [\w.-]{1,40}=(?:\d{1,18},){2}\d{1,18})*)$",
    re.MULTILINE,
)
"""A promise: time, kind, number, and what the disks of a guest had completed."""


def made(
    recording: Path, workload: str, measured: Sequence[str], output: str
) -> tuple[list[tuple[int, str, int]], int, int]:
    """Return the instant, kind and number of each promise, the margin of the instants, and the
    number of calls whose promise is unknown."""
    with capture.opened(recording) as opened:
        begin_unix_ns = opened.info()["begin_unix_ns"]
    # Any command may print such lines.
    said = [] if workload == COMMAND else _KEPT.findall(output)
    if any(disks for *_, disks in said):
        placed = _Placed(recording)
        return (
            [
                (placed.at_ns(_completed(disks)), kind, int(number))
                for _, kind, number, disks in said
            ],
            0,
            0,
        )
    if not begin_unix_ns:
        raise InputError(
            f"{recording} is of an emulated guest, whose clock is another one: its fsync calls have"
            " no place in it",
            "name a --workload, or measure the command with --lab native",
        )
    if checked(workload) is None:
        promises, unknown = fsynced.heard(recording, measured)
        return promises, _CALLS_MARGIN_NS, unknown
    promises = [(int(at_ns) - begin_unix_ns, kind, int(number)) for at_ns, kind, number, _ in said]
    return promises, _MARGIN_NS, 0


def _completed(disks: str) -> dict[str, _Counts]:
    """Return what each disk had completed."""
    found = {}
    for word in disks.split():
        name, _, counts = word.partition("=")
        written, discarded, flushes = map(int, counts.split(","))
        found[name] = (written, discarded, flushes)
    return found


class _Placed:
    """The requests of a recording, counted as a guest's kernel counts them."""

    def __init__(self, recording: Path) -> None:
        self._recording = recording
        self._sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0])
        self._ends_ns: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0])
        for batch in capture.requests(recording):
            columns = ("disk", "op", "length", "complete_ns")
            rows = (batch.column(name).to_pylist() for name in columns)
            for disk, op, length, complete_ns in zip(*rows, strict=True):
                if (place := _COUNTED.get(op)) is None:
                    continue
                sums = self._sums[disk, place]
                sums.append(sums[-1] + (1 if op == "flush" else length // _SECTOR_BYTES))
                self._ends_ns[disk, place].append(complete_ns)

    def at_ns(self, completed: Mapping[str, _Counts]) -> int:
        """Return the instant from which the disks had completed all this."""
        return max(
            self._end_ns(disk, place, count)
            for disk, counts in completed.items()
            for place, count in enumerate(counts)
        )

    def _end_ns(self, disk: str, place: int, count: int) -> int:
        sums = self._sums[disk, place]
        number = bisect_left(sums, count)
        if number == len(sums):
            raise InputError(
                f"{self._recording} has fewer requests than its workload saw", "measure it again"
            )
        return self._ends_ns[disk, place][number]
