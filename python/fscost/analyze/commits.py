"""Causes of a journal's commits: a program's call, the commit timer, or the settling of a phase."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from fscost.analyze.explain import Mark

Times = NDArray[np.int64]

_PERIOD_NS = {"ext": 5 * 10**9, "xfs": 30 * 10**9, "btrfs": 30 * 10**9}
"""Interval of the kernel's commit timer, unless a mark records a mount option `commit`. For xfs,
the default of fs.xfs.xfssyncd_centisecs is assumed."""
_MARGIN_NS = 10**9
"""Tolerance of the timer: it is set in ticks and a commit takes time, so a commit this much earlier
may still be the timer's."""
SOON_NS = 10**9
"""Time within which a call that needs a commit starts it."""
_LOGGED = "btrfs"
"""Family in which most calls are served without a commit, so the times of calls are no evidence for
commits."""


class Why(StrEnum):
    """Cause of a transaction's commit. `other`: no call, and too early for the timer: a sync of
    everything, or lack of space. `untold`: the recording has no times."""

    FORCED = "forced"
    TIMER = "timer"
    SETTLE = "settle"
    OTHER = "other"
    UNTOLD = "untold"


@dataclass(frozen=True)
class Reasons:
    """Cause of each transaction's commit. `inferred`: for some transactions, the recording does not
    show whether a program made a call, so the cause is inferred from their timing. `period_ns`: the
    timer's period."""

    why: NDArray[np.str_]
    inferred: bool
    period_ns: int

    def count(self, why: Why) -> int:
        """Number of transactions that ended for this cause."""
        return int((self.why == why.value).sum())


def reasons(
    family: str, begin_ns: Times, end_ns: Times, marks: Sequence[Mark], is_timed: bool
) -> Reasons:
    """Find the cause of each transaction's commit. The transactions are in order, with the times at
    which the first and the last block of each were written.

    The timer starts when a transaction begins. A transaction cannot begin before the previous one
    is being written. It also cannot begin before its interval, because each interval ends settled.
    A commit less than a timer period after the later of these two times is therefore not the
    timer's. Settling writes the last transaction of each interval. If the lab recorded calls
    (`sync_calls` in the mark that ends an interval), a transaction was forced if a call came since
    the previous one. Otherwise, it was forced if it came early.
    """
    period_ns = _period_ns(family, marks)
    if not len(end_ns) or not is_timed:
        return Reasons(np.full(len(end_ns), Why.UNTOLD.value), False, period_ns)
    bounds = np.array([mark.at_ns for mark in marks], np.int64)
    interval = np.searchsorted(bounds, end_ns, side="right")
    last = np.append(
        interval[1:] != interval[:-1], bool(len(marks)) and bool(interval[-1] < len(marks))
    )
    before_begin, before_end = np.append(0, begin_ns[:-1]), np.append(0, end_ns[:-1])
    began = np.maximum(before_begin, np.append(0, bounds)[interval])
    early = begin_ns - began < period_ns - _MARGIN_NS
    calls, heard = (
        _calls(marks, interval, end_ns)
        if family != _LOGGED
        else (np.array([], np.int64), np.zeros(len(end_ns), bool))
    )
    called = np.searchsorted(calls, end_ns, side="right") > np.searchsorted(
        calls, before_begin, side="right"
    )
    # The first call since the previous commit decides: a call that needs a commit starts one soon. If
    # that call is long past, no call needed one.
    first = np.append(calls, np.iinfo(np.int64).max)[
        np.searchsorted(calls, before_end, side="right")
    ]
    forced = np.where(heard, called & (early | (begin_ns - first < SOON_NS)), early & ~last)
    names = [why.value for why in (Why.FORCED, Why.SETTLE, Why.OTHER, Why.TIMER)]
    why = np.select([forced, last, early], names[:3], names[3])
    return Reasons(why, not heard.all(), period_ns)


def _period_ns(family: str, marks: Sequence[Mark]) -> int:
    told = next((mark.detail["commit_s"] for mark in marks if "commit_s" in mark.detail), None)
    if type(told) is int and 0 < told < 1 << 20:
        return told * 10**9
    return _PERIOD_NS[family]


def _calls(
    marks: Sequence[Mark], interval: NDArray[np.int64], end_ns: Times
) -> tuple[Times, NDArray[np.bool_]]:
    """Return the times of all calls in order, and the transactions for which the calls are known. A
    mark holds only a limited number of calls."""
    calls: list[Times] = []
    heard = np.zeros(len(end_ns), bool)
    for number in map(int, np.unique(interval)):
        if not 0 < number < len(marks):
            continue
        noted = marks[number].detail.get("sync_calls")
        if not isinstance(noted, dict) or not isinstance(noted.get("after_us"), list):
            continue
        times = marks[number - 1].at_ns + 1000 * np.cumsum(
            np.fromiter(whole(noted["after_us"]), np.int64)
        )
        times = times[times <= marks[number].at_ns]
        here = interval == number
        calls.append(times)
        heard |= here & ((end_ns <= times.max(initial=0)) | (len(times) == noted.get("count")))
    return np.sort(np.concatenate([np.array([], np.int64), *calls])), heard


def whole(differences_us: Sequence[object]) -> Iterator[int]:
    """Yield the valid differences. The recording is untrusted; the limit keeps their sums in
    range."""
    for each in differences_us:
        if type(each) is not int or not 0 <= each < 1 << 32:
            return
        yield each
