"""Conversion of intervals to samples, with the names and units of all measured values."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from fscost.lab.base import ALL_PHASES, VIRTUAL_UNITS, Sample
from fscost.lab.cell.events import Interval

_BINS = 4
"""Histogram bins per doubling of the time."""
_METRICS_BY_UNIT = {
    "bytes": (
        "device_write_bytes device_read_bytes device_discard_bytes settle_write_bytes"
        " unmount_write_bytes program_write_bytes program_read_bytes space_used_bytes"
        " space_taken_bytes space_overhead_bytes space_reserved_bytes metadata_used_bytes"
    ),
    "count": (
        "device_write_requests device_read_requests device_discards device_flushes sync_calls"
        " outside_sync_calls probe_operations"
    ),
    "ratio": "write_amplification",
    "s": (
        "wall_s command_s settle_s cpu_s cpu_user_s cpu_system_s cpu_kernel_threads_s"
        " cpu_disk_server_s pause_s_p99 pause_s_max"
    ),
    "ns": ("fsync_latency_ns_p50 fsync_latency_ns_p95 fsync_latency_ns_p99 fsync_latency_ns_max"),
}
UNITS = {metric: unit for unit, names in _METRICS_BY_UNIT.items() for metric in names.split()}
_GIVEN = (
    "space_used_bytes space_taken_bytes space_overhead_bytes space_reserved_bytes"
    " metadata_used_bytes sync_calls outside_sync_calls"
)
"""Fields of an interval that are null where they cannot be measured."""
_DEVICE = {
    "device_write_bytes": "write_bytes",
    "device_read_bytes": "read_bytes",
    "device_discard_bytes": "discard_bytes",
    "device_write_requests": "write_requests",
    "device_read_requests": "read_requests",
    "device_discards": "discard_requests",
    "device_flushes": "flush_requests",
}


def samples(intervals: Iterable[Interval], is_emulated: bool = False) -> list[Sample]:
    """Return every number of every interval: sums with an empty `disk`, and the device's numbers
    per disk if there are several disks.

    `is_emulated`: times come from a clock that counts instructions, and get `VIRTUAL_UNITS`, so
    that nobody mistakes them for a device's times.
    """
    return _by_clock(_samples(intervals), is_emulated)


def totals(intervals: Iterable[Interval], is_emulated: bool = False) -> list[Sample]:
    """Return percentiles over the calls of all measured phases together, because percentiles of
    phases do not add up."""
    times: Counter[int] = Counter()
    for interval in intervals:
        if interval.measured:
            times.update(dict(interval.sync_times_ns or ()))
    result = [
        Sample(ALL_PHASES, True, "", metric, UNITS[metric], value)
        for metric, value in _fsyncs(sorted(times.items()))
    ]
    return _by_clock(result, is_emulated)


def histograms(intervals: Iterable[Interval]) -> dict[str, dict[str, list[int]]]:
    """Histograms of the durations of fsync and fdatasync (`fsync`) and of the probe's pauses
    (`pause`) in all measured phases. Each has upper bounds in nanoseconds, four per doubling, and
    the number of values between each bound and the previous one."""
    times: dict[str, Counter[int]] = {"fsync": Counter(), "pause": Counter()}
    for interval in intervals:
        if interval.measured:
            times["fsync"].update(dict(interval.sync_times_ns or ()))
            times["pause"].update(interval.pauses_ns)
    return {name: _histogram(found) for name, found in times.items() if found}


def _histogram(times_ns: Mapping[int, int]) -> dict[str, list[int]]:
    bins: Counter[int] = Counter()
    for ns, count in times_ns.items():
        bins[math.ceil(_BINS * math.log2(max(ns, 1)))] += count
    return {
        "at_most_ns": [math.ceil(2 ** (number / _BINS)) for number in sorted(bins)],
        "requests": [bins[number] for number in sorted(bins)],
    }


def _by_clock(samples: list[Sample], is_emulated: bool) -> list[Sample]:
    return [
        replace(each, unit=VIRTUAL_UNITS.get(each.unit, each.unit)) if is_emulated else each
        for each in samples
    ]


def _fsyncs(times_ns: Sequence[tuple[int, int]]) -> Iterator[tuple[str, float]]:
    """Yield percentiles by nearest rank, from values with their counts."""
    if not times_ns:
        return
    values, counts = zip(*times_ns, strict=True)
    # Python integers, because a guest may report counts whose sum exceeds 64 bits.
    ranks = list(accumulate(counts))
    for percent in (50, 95, 99):
        rank = -(-percent * ranks[-1] // 100)
        yield f"fsync_latency_ns_p{percent}", float(values[bisect_left(ranks, rank)])
    yield "fsync_latency_ns_max", float(values[-1])


def _samples(intervals: Iterable[Interval]) -> list[Sample]:
    result = []
    for interval in intervals:
        result += [_sample(interval, "", metric, value) for metric, value in _values(interval)]
        if len(interval.counters) > 1:
            for disk, counters in interval.counters.items():
                result += [
                    _sample(interval, disk, metric, getattr(counters, name))
                    for metric, name in _DEVICE.items()
                ]
                result += [
                    _sample(interval, disk, metric, written[disk])
                    for metric, written in _late(interval)
                    if disk in written
                ]
    return result


def _late(interval: Interval) -> tuple[tuple[str, dict[str, int]], ...]:
    return (
        ("settle_write_bytes", interval.settle_write_bytes),
        ("unmount_write_bytes", interval.unmount_write_bytes),
    )


def _sample(interval: Interval, disk: str, metric: str, value: float) -> Sample:
    return Sample(interval.name, interval.measured, disk, metric, UNITS[metric], float(value))


def _values(interval: Interval) -> Iterator[tuple[str, float]]:
    for metric, name in _DEVICE.items():
        yield metric, sum(getattr(counters, name) for counters in interval.counters.values())
    for metric, late in _late(interval):
        if late:
            yield metric, sum(late.values())
    yield "program_write_bytes", interval.program_write_bytes
    yield "program_read_bytes", interval.program_read_bytes
    if interval.program_write_bytes > 0:
        written = sum(counters.write_bytes for counters in interval.counters.values())
        yield "write_amplification", written / interval.program_write_bytes
    yield "wall_s", _seconds(interval.wall_ns)
    yield "command_s", _seconds(interval.command_ns)
    yield "settle_s", _seconds(interval.settle_ns)
    yield "cpu_user_s", _seconds(interval.cpu_user_ns)
    yield "cpu_system_s", _seconds(interval.cpu_system_ns)
    # Kernel threads are invisible in a container; a sum without them would make a file system look
    # cheap.
    if interval.cpu_kernel_threads_ns is not None:
        of_commands_ns = interval.cpu_user_ns + interval.cpu_system_ns
        yield "cpu_s", _seconds(of_commands_ns + interval.cpu_kernel_threads_ns)
        yield "cpu_kernel_threads_s", _seconds(interval.cpu_kernel_threads_ns)
    if interval.cpu_disk_server_ns is not None:
        yield "cpu_disk_server_s", _seconds(interval.cpu_disk_server_ns)
    for metric in _GIVEN.split():
        if (value := getattr(interval, metric)) is not None:
            yield metric, value
    yield from _fsyncs(interval.sync_times_ns or ())
    if interval.pauses_ns:
        yield "pause_s_p99", _seconds(percentile(interval.pauses_ns, 99))
        yield "pause_s_max", _seconds(max(interval.pauses_ns))
    if interval.probe is not None:
        yield "probe_operations", len(interval.pauses_ns)


def percentile(values: Sequence[int], percent: float) -> int:
    """Percentile by nearest rank: a pause that occurred, never an interpolated value."""
    return int(np.sort(np.asarray(values))[max(0, math.ceil(percent / 100 * len(values)) - 1)])


def _seconds(ns: int) -> float:
    return ns / 1e9
