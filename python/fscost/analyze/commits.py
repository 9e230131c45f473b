"""Why a journal's transaction was committed: because a program asked, because its time had come, or
because the phase settled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from fscost.analyze.explain import Mark

Times = NDArray[np.int64]

_PERIOD_NS = {"ext": 5 * 10**9, "xfs": 30 * 10**9, "btrfs": 30 * 10**9}
"""When the kernel commits unasked, unless a mark tells of a mount option `commit`; xfs's
fs.xfs.xfssyncd_centisecs is taken to be as it comes."""
_MARGIN_NS = 10**9
"""A timer is set in ticks and a commit takes its time: this much earlier may still be the timer."""
_SOON_NS = 10**9
"""A call that needs a commit has it begun by then."""
_LOGGED = "btrfs"
"""Where most calls are served without a commit, so that when they came says nothing of commits."""


class Why(StrEnum):
    """What made a transaction end. `other`: no call, and too early for the timer: a sync of
    everything, or want of room. `untold`: the recording has no times."""

    FORCED = "forced"
    TIMER = "timer"
    SETTLE = "settle"
    OTHER = "other"
    UNTOLD = "untold"


@dataclass(frozen=True)
class Reasons:
    """One for each transaction; `inferred` when the recording does not tell when a program asked,
    and the pattern had to."""

    why: NDArray[np.str_]
    inferred: bool

    def count(self, why: Why) -> int:
        """How many ended because of it."""
        return int((self.why == why.value).sum())


def reasons(
    family: str, begin_ns: Times, end_ns: Times, marks: Sequence[Mark], is_timed: bool
) -> Reasons:
    """Of transactions in their order, from when the first and the last block of each was written.

    A timer runs from the beginning of a transaction, which is neither before the one before was
    being written nor, as intervals end settled, before
    its interval; so one that comes earlier is not the timer's. The last of each interval is what
    settling writes. Where the lab heard the calls
    (`sync_calls` in the mark that ends an interval), one since the transaction before forced it;
    elsewhere it was forced if it came early.
    """
    if not len(end_ns) or not is_timed:
        return Reasons(np.full(len(end_ns), Why.UNTOLD.value), False)
    bounds = np.array([mark.at_ns for mark in marks], np.int64)
    interval = np.searchsorted(bounds, end_ns, side="right")
    last = np.append(
        interval[1:] != interval[:-1], bool(len(marks)) and bool(interval[-1] < len(marks))
    )
    before_begin, before_end = np.append(0, begin_ns[:-1]), np.append(0, end_ns[:-1])
    began = np.maximum(before_begin, np.append(0, bounds)[interval])
    early = begin_ns - began < _period_ns(family, marks) - _MARGIN_NS
    calls, heard = (
        _calls(marks, interval, end_ns)
        if family != _LOGGED
        else (np.array([], np.int64), np.zeros(len(end_ns), bool))
    )
    called = np.searchsorted(calls, end_ns, side="right") > np.searchsorted(
        calls, before_begin, side="right"
    )
    # Of many calls that needed no commit, the last before the timer's needed none either.
    first = np.append(calls, np.iinfo(np.int64).max)[
        np.searchsorted(calls, before_end, side="right")
    ]
    forced = np.where(heard, called & (early | (begin_ns - first < _SOON_NS)), early & ~last)
    names = [why.value for why in (Why.FORCED, Why.SETTLE, Why.OTHER, Why.TIMER)]
    return Reasons(np.select([forced, last, early], names[:3], names[3]), not heard.all())


def _period_ns(family: str, marks: Sequence[Mark]) -> int:
    told = next((mark.detail["commit_s"] for mark in marks if "commit_s" in mark.detail), None)
    if type(told) is int and 0 < told < 1 << 20:
        return told * 10**9
    return _PERIOD_NS[family]


def _calls(
    marks: Sequence[Mark], interval: NDArray[np.int64], end_ns: Times
) -> tuple[Times, NDArray[np.bool_]]:
    """All calls, in order; and of which transactions it is known whether there was one: a mark
    holds only so many."""
    calls: list[Times] = []
    heard = np.zeros(len(end_ns), bool)
    for number in map(int, np.unique(interval)):
        if not 0 < number < len(marks):
            continue
        noted = marks[number].detail.get("sync_calls")
        if not isinstance(noted, dict) or not isinstance(noted.get("after_us"), list):
            continue
        times = marks[number - 1].at_ns + 1000 * np.cumsum(
            np.fromiter(_whole(noted["after_us"]), np.int64)
        )
        times = times[times <= marks[number].at_ns]
        here = interval == number
        calls.append(times)
        heard |= here & ((end_ns <= times.max(initial=0)) | (len(times) == noted.get("count")))
    return np.sort(np.concatenate([np.array([], np.int64), *calls])), heard


def _whole(differences_us: Sequence[object]) -> Iterator[int]:
    """Whoever wrote the recording wrote these: no sum of them is out of bounds."""
    for each in differences_us:
        if type(each) is not int or not 0 <= each < 1 << 32:
            return
        yield each
