"""Replay of recordings on device models, to find the time the disks would take."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fscost import analyze, capture
from fscost.errors import InputError
from fscost.latency.model import Model, find

if TYPE_CHECKING:
    from fscost._native import Histogram, ReplayedInterval

OPS: Final = ("read", "write", "flush", "discard")
DEFAULT = "ram"
"""Model of disks for which none is named."""


class Waits(Enum):
    """Assumption about which other requests a request waits for. A recording cannot show this."""

    FLUSHES = "flushes"
    """Flushes and FUA alone order requests. The result is a lower bound of the time."""
    ALL = "all"
    """Each request waits for all requests that completed before its submission in the recording."""


@dataclass(frozen=True)
class Latencies:
    """Latencies of requests: buckets (smallest, largest, count) at most 1/16 wide, with the exact
    sum and maximum."""

    buckets: Sequence[tuple[int, int, int]] = ()
    sum_ns: int = 0
    max_ns: int = 0

    @property
    def count(self) -> int:
        """Number of requests."""
        return sum(count for _, _, count in self.buckets)

    @property
    def mean_ns(self) -> float | None:
        """Mean latency; None if there are no requests."""
        return self.sum_ns / self.count if self.count else None

    def percentile_ns(self, percent: float) -> int | None:
        """Return the upper end of the bucket that holds this percentile; None if there are no
        requests."""
        wanted, passed = self.count * percent / 100, 0
        for _, most, count in self.buckets:
            passed += count
            if passed >= wanted:
                return min(most, self.max_ns)
        return None

    def __add__(self, other: "Latencies") -> "Latencies":
        counts: dict[tuple[int, int], int] = {}
        for least, most, count in (*self.buckets, *other.buckets):
            counts[least, most] = counts.get((least, most), 0) + count
        return Latencies(
            [(*ends, count) for ends, count in sorted(counts.items())],
            self.sum_ns + other.sum_ns,
            max(self.max_ns, other.max_ns),
        )


@dataclass(frozen=True)
class DiskTimes:
    """Times of a disk on its model. `busy_s`: time during which any request was in flight."""

    disk: str
    model: str
    elapsed_s: float
    busy_s: float
    latencies: Mapping[str, Latencies]

    @property
    def utilisation(self) -> float | None:
        """Busy ÷ elapsed time; None if no time passed."""
        return self.busy_s / self.elapsed_s if self.elapsed_s else None

    @property
    def queue_depth(self) -> float | None:
        """Mean number of requests in flight (Little's law); None if no time passed."""
        in_flight_s = sum(each.sum_ns for each in self.latencies.values()) / 1e9
        return in_flight_s / self.elapsed_s if self.elapsed_s else None


@dataclass(frozen=True)
class Replay:
    """Replay of a recording's measured phases on models. `disks` come from the replay
    *in order*."""

    recorded_s: float
    least_s: float
    """Least time of the replays that keep to the recording's flushes and FUA: the one in which
    nothing else orders requests, or that of `closed_s`."""
    closed_s: float
    """Time of the replay *in order*: each request waits for all requests that completed before its
    submission in the recording."""
    disks: Sequence[DiskTimes]


def parse_models(asked: Sequence[str]) -> dict[str, Model]:
    """Parse models by disk, in the syntax `main=hdd-7200`."""
    found: dict[str, Model] = {}
    for each in asked:
        disk, equals, name = each.partition("=")
        if not equals or not disk or not name:
            raise InputError(
                f"--disk {each!r} is not NAME=MODEL", "write for instance --disk main=hdd-7200"
            )
        if disk in found:
            raise InputError(f"--disk {disk} is given twice", "give each disk one model")
        found[disk] = find(name)
    return found


@dataclass(frozen=True)
class Times:
    """Times of one interval: recorded, by the program's clock, and replayed. `least_s` is the least
    of the replays that keep to the recording's flushes and FUA: the one in which nothing else
    orders requests, or the one in order. A drive that reorders its queue may find a longer way when
    it has more to choose from."""

    recorded_s: float
    least_s: float
    in_order_s: float


def replay(
    recording: Path,
    models: Mapping[str, Model],
    *,
    measured: Sequence[str] = (),
    seed: int = 1,
) -> Replay:
    """Replay the measured phases of a recording; disks without a model are `ram`."""
    names, chosen = _disks(recording, models)
    phases = set(measured or analyze.measured_phases(recording))
    both = _both(recording, chosen, seed)
    return _joined(names, chosen, _times(both), both[1], phases)


def replay_phases(
    recording: Path, models: Mapping[str, Model], *, seed: int = 1
) -> dict[str, Times]:
    """Replay a recording; return the times of each interval."""
    both = _both(recording, _disks(recording, models)[1], seed)
    names = [each["name"] for each in both[1]]
    return dict(zip(names, _times(both), strict=True))


def _disks(recording: Path, models: Mapping[str, Model]) -> tuple[list[str], list[Model]]:
    """Return the names of the recording's disks, and the model of each."""
    names = [each["name"] for each in capture.info(recording)["disks"]]
    return names, _chosen(recording, names, models)


def _both(
    recording: Path, models: Sequence[Model], seed: int
) -> "Sequence[Sequence[ReplayedInterval]]":
    """Replay the intervals of a recording under both assumptions."""
    with capture.opened(recording) as source:
        both = source.replay(_texts(models), _BOTH, seed)
    if both is None:
        raise InputError(
            f"{recording} does not tell how much time passed between requests: an emulated guest's"
            " requests are stamped by the host's clock, and its marks lack the guest's",
            "record the run again with this version of fscost, or natively (--lab native)",
        )
    return both


def replay_trace(
    path: Path, models: Mapping[str, Model], form: str | None = None, *, seed: int = 1
) -> Replay:
    """Replay another tool's trace (docs/traces.md). `least_s`: each request is submitted at its own
    time in the trace, and flushes order the others; `closed_s`: each waits for the one before."""
    with capture.traced_requests(path, form) as source:
        names = source.disks()
        if not names:
            raise InputError(
                f"{path} has no requests", "name a trace that has some (docs/traces.md)"
            )
        chosen = _chosen(path, names, models)
        both = source.replay(_texts(chosen), _BOTH, seed)
    return _joined(names, chosen, _times(both), both[1], {each["name"] for each in both[1]})


_BOTH: Final = (Waits.FLUSHES.value, Waits.ALL.value)
_MOST_NAMES = 8


def _chosen(path: Path, names: Sequence[str], models: Mapping[str, Model]) -> list[Model]:
    """Return the model of each disk."""
    for disk in models:
        if disk not in names:
            shown = ", ".join(names[:_MOST_NAMES]) + ", …" * (len(names) > _MOST_NAMES)
            raise InputError(f"{path} has no disk {disk!r}", f"name one of its disks: {shown}")
    return [models.get(name) or find(DEFAULT) for name in names]


def _texts(chosen: Sequence[Model]) -> list[tuple[str, str]]:
    return [(each.origin, each.text) for each in chosen]


def _times(both: "Sequence[Sequence[ReplayedInterval]]") -> list[Times]:
    """Join the replays of each interval under both assumptions."""
    found = []
    for least, in_order in zip(*both, strict=True):
        least_s, in_order_s = (each["modelled_ns"] / 1e9 for each in (least, in_order))
        found.append(Times(in_order["recorded_ns"] / 1e9, min(least_s, in_order_s), in_order_s))
    return found


def _joined(
    names: Sequence[str],
    chosen: Sequence[Model],
    times: Sequence[Times],
    in_order: "Sequence[ReplayedInterval]",
    phases: Collection[str],
) -> Replay:
    """Join the intervals of these phases."""
    both = [pair for pair in zip(times, in_order, strict=True) if pair[1]["name"] in phases]
    closed_s = sum(time.in_order_s for time, _ in both)
    disks = [
        DiskTimes(
            name,
            chosen[at].name,
            closed_s,
            sum(each["disks"][at]["busy_ns"] for _, each in both) / 1e9,
            {op: _latencies(each["disks"][at][op] for _, each in both) for op in OPS},
        )
        for at, name in enumerate(names)
    ]
    recorded_s = sum(time.recorded_s for time, _ in both)
    return Replay(recorded_s, sum(time.least_s for time, _ in both), closed_s, disks)


def live(
    recording: Path,
    texts: Sequence[tuple[str, str]],
    waits: Waits,
    seed: int,
) -> "list[ReplayedInterval]":
    """Replay a recording whose disks ran on models; return its intervals. `texts`: origin and text
    of each disk's model."""
    with capture.opened(recording) as source:
        found = source.replay(list(texts), [waits.value], seed)
    assert found is not None, "a live run is recorded in real time"
    return found[0]


def _latencies(found: "Iterable[Histogram]") -> Latencies:
    parts = (Latencies(each["buckets"], each["sum_ns"], each["max_ns"]) for each in found)
    return sum(parts, Latencies())
