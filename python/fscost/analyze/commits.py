"""Why a journal's transaction was committed: because a program asked, because its time had come, or because the phase settled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fscost.analyze.explain import Mark

Times = NDArray[np.int64]

_PERIOD_NS = {"ext": 5 * 10**9, "xfs": 30 * 10**9, "btrfs": 30 * 10**9}
"""When the kernel commits unasked: ext4's and btrfs's mount option `commit`, and fs.xfs.xfssyncd_centisecs, unless they were changed."""
_MARGIN_NS = 10**9
"""A timer is set in ticks and a commit takes its time: this much earlier may still be the timer."""


class Why(StrEnum):
    """What made a transaction end; untold where the recording has no times."""

    FORCED = "forced"
    TIMER = "timer"
    SETTLE = "settle"
    UNTOLD = "untold"


@dataclass(frozen=True)
class Reasons:
    """One for each transaction; `inferred` when the recording does not tell when a program asked, and the pattern had to."""

    why: Sequence[Why]
    inferred: bool

    def count(self, why: Why) -> int:
        """How many ended because of it."""
        return sum(each is why for each in self.why)


def reasons(family: str, begin_ns: Times, end_ns: Times, marks: Sequence[Mark], is_timed: bool) -> Reasons:
    """Of transactions in their order, from when the first and the last block of each was written.

    Where the lab noted the calls (`sync_calls` in the mark that ends an interval), one that spans the end forced it. Elsewhere: a timer runs from the
    beginning of a transaction, which is neither before the one before was being written nor, as intervals end settled, before its interval; so one
    that comes earlier was forced (by an fsync, a sync or for want of room), but for the last of each interval, which is what settling writes.
    """
    if not len(end_ns) or not is_timed:
        return Reasons([Why.UNTOLD] * len(end_ns), False)
    bounds = np.array([mark.at_ns for mark in marks], np.int64)
    interval = np.searchsorted(bounds, end_ns, side="right")
    last = np.append(interval[1:] != interval[:-1], bool(len(marks)) and bool(interval[-1] < len(marks)))
    began = np.maximum(np.append(0, begin_ns[:-1]), np.append(0, bounds)[interval])
    early = begin_ns - began < _PERIOD_NS[family] - _MARGIN_NS
    forced = early & ~last
    inferred = False
    for number in np.unique(interval):
        here = interval == number
        calls = _calls(marks[number].detail) if number < len(marks) else None
        if calls is None:
            inferred = True
        else:
            forced[here] = _spanned(end_ns[here], calls)
    return Reasons([_why(bool(f), bool(s)) for f, s in zip(forced, last, strict=True)], inferred)


def _why(forced: bool, last: bool) -> Why:
    return Why.FORCED if forced else Why.SETTLE if last else Why.TIMER


def _spanned(instants: Times, calls: Times) -> NDArray[np.bool_]:
    """Which instants lie within a call."""
    if not len(calls):
        return np.zeros(len(instants), bool)
    calls = calls[np.argsort(calls[:, 0], kind="stable")]
    latest_end = np.maximum.accumulate(calls[:, 1])
    place = np.searchsorted(calls[:, 0], instants, side="right") - 1
    return (place >= 0) & (latest_end[np.maximum(place, 0)] >= instants)


def _calls(detail: Mapping[str, Any]) -> Times | None:
    """Begin and end of each call; None where the lab did not note them, or not all."""
    noted = detail.get("sync_calls")
    if not isinstance(noted, dict) or not isinstance(noted.get("calls"), list):
        return None
    found = list(_pairs(noted["calls"]))
    return np.array(found, np.int64).reshape(-1, 2) if len(found) == noted.get("count") else None


def _pairs(calls: Sequence[Any]) -> Iterator[tuple[int, int]]:
    for call in calls:
        if isinstance(call, list) and len(call) == 2 and all(type(each) is int and 0 <= each < 1 << 63 for each in call):
            yield call[0], call[1]
