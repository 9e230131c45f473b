"""Request times of a cell's disks that have a device model, as metrics of its phases, and a table
of when each disk was busy (docs/time.md)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fscost import files, latency
from fscost.lab.base import CellResult, Sample
from fscost.lab.cell.plan import Paths, real_disks, timed_disks
from fscost.results import METRICS, TOTAL

OPS: Mapping[str, tuple[str, ...]] = {"read": ("read",), "write": ("write",), "flush": ("flush",)}
PERCENTILES = (50, 99)
DEVICE_MODELS = "device_models"
"""Cell fact that names the model of each disk."""
HISTOGRAMS = "latency_histograms"
"""Cell fact with the latencies of each disk's requests: upper bounds in nanoseconds, each double
the previous one, and how many requests lie below each."""
MEASURED_SPAN = "measured_span_ns"
"""Cell fact with the recording's instants at which the first measured phase begins and the last one
ends."""
TIMELINE_BIN_NS = 100_000_000
_BEFORE = "before"
Numbers = npt.NDArray[np.int64]
Bins = npt.NDArray[np.float64]
TIMELINE = pa.schema(
    {
        "disk": pa.string(),
        "begin_ns": pa.uint64(),
        "utilisation": pa.float64(),
        "queue_depth_mean": pa.float64(),
    }
)


@dataclass(frozen=True)
class Requests:
    """Requests of modelled disks, in order of submission."""

    op: npt.NDArray[np.str_]
    submit_ns: Numbers
    latency_ns: Numbers
    late_ns: Numbers
    length: Numbers

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Requests":
        """Return the chosen requests."""
        return Requests(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    @property
    def complete_ns(self) -> Numbers:
        """Time at which the model completed each request."""
        return self.submit_ns + self.latency_ns


def add_to(result: CellResult, cell_dir: Path) -> None:
    """Add the metrics of each phase and of all measured phases together, for each disk and for all
    disks."""
    disks = {disk.name: disk.model for disk in timed_disks(result.cell)}
    if not disks or result.status != "done":
        return
    result.facts[DEVICE_MODELS] = disks
    table = pq.read_table(Paths(cell_dir).requests)
    of_disks = {disk: _requests(table, disk) for disk in disks}
    result.facts[HISTOGRAMS] = {disk: _histograms(found) for disk, found in of_disks.items()}
    _write_timeline(cell_dir / "timeline.parquet", of_disks)
    phases = {sample.phase: sample.measured for sample in result.samples}
    spans = {
        each.name: (each.begin_ns, each.end_ns) for each in result.recorded if each.name in phases
    }
    measured = [span for phase, span in spans.items() if phases[phase]]
    begins, ends = zip(*measured, strict=True)
    result.facts[MEASURED_SPAN] = [min(begins), max(ends)]
    result.samples += _least(result, cell_dir, phases)
    several = len(result.cell.profile.disks) > 1
    for disk, found in (of_disks if several else {}).items():
        result.samples += _samples(disk, found, spans, phases)
    result.samples += _samples("", _joined(list(of_disks.values())), spans, phases)


def _least(result: CellResult, cell_dir: Path, phases: Mapping[str, bool]) -> Iterator[Sample]:
    """Yield the lower bound of each phase's time; nothing if a real device took part."""
    cell = result.cell
    if real_disks(cell):
        return
    paths = Paths(cell_dir)
    ram = latency.find("ram")
    texts = [
        (str(path), path.read_text()) if disk.model else (ram.origin, ram.text)
        for disk in cell.profile.disks
        for path in [paths.model(disk.name)]
    ]
    intervals = latency.live(paths.recording, texts, latency.Waits.FLUSHES, cell.seed)
    wall_s = {each.phase: each.value for each in result.samples if each.metric == "wall_s"}
    for interval in intervals:
        if (phase := interval["name"]) in phases:
            seconds = least_wall_s(interval, wall_s.get(phase))
            yield Sample(phase, phases[phase], "", "least_wall_s", "s", seconds)


def least_wall_s(interval: Mapping[str, Any], wall_s: float | None) -> float:
    """Lower bound of `wall_s`. A replayed interval spans mark to mark, so it includes the time
    before the command and after settling, in which the agent reads counters. The run itself kept
    to its flushes: it is one of the orders that the bound allows, and better than the replay's if a
    drive that reorders its queue found a longer way when it had more to choose from."""
    modelled_s = float(interval["modelled_ns"]) / 1e9
    if wall_s is None:
        return modelled_s
    outside_s = max(0.0, float(interval["recorded_ns"]) / 1e9 - wall_s)
    return min(wall_s, max(0.0, modelled_s - outside_s))


def _requests(table: pa.Table, disk: str) -> Requests:
    import pyarrow.compute as pc

    table = table.filter(pc.equal(table["disk"].cast(pa.string()), disk))
    table = table.filter(pc.is_valid(table["latency_ns"]))
    numbers = ("submit_ns", "latency_ns", "late_ns", "length")
    columns = [table[name].to_numpy().astype(np.int64) for name in numbers]
    op = np.asarray(table["op"].cast(pa.string()).to_pylist(), dtype=np.str_)
    return Requests(op, *columns)


def _joined(parts: list[Requests]) -> Requests:
    names = Requests.__dataclass_fields__
    found = Requests(*(np.concatenate([getattr(each, name) for each in parts]) for name in names))
    order = np.argsort(found.submit_ns, kind="stable")
    return Requests(*(getattr(found, name)[order] for name in names))


def _samples(
    disk: str,
    found: Requests,
    spans: Mapping[str, tuple[int, int]],
    phases: Mapping[str, bool],
) -> Iterator[Sample]:
    chosen = np.zeros(len(found.op), bool)
    elapsed_ns = 0
    for phase, (begin_ns, end_ns) in spans.items():
        inside = (begin_ns <= found.submit_ns) & (found.submit_ns < end_ns)
        for metric, value in _values(found.where(inside), end_ns - begin_ns):
            yield Sample(phase, phases[phase], disk, metric, METRICS[metric].unit, value)
        if phases[phase]:
            chosen |= inside
            elapsed_ns += end_ns - begin_ns
    for metric, value in _values(found.where(chosen), elapsed_ns):
        yield Sample(TOTAL, True, disk, metric, METRICS[metric].unit, value)


def _values(found: Requests, elapsed_ns: int) -> Iterator[tuple[str, float]]:
    for name, ops in OPS.items():
        latencies = found.latency_ns[np.isin(found.op, ops)]
        for percent in PERCENTILES if len(latencies) else ():
            yield f"{name}_latency_ns_p{percent}", _percentile(latencies, percent)
    if len(found.op):
        yield "reply_late_ns_p99", _percentile(found.late_ns, 99)
        depth, held_ns = _depths(found)
        busy_ns = int(held_ns[depth > 0].sum())
        yield "device_utilisation", busy_ns / elapsed_ns if elapsed_ns else 0.0
        yield "queue_depth_mean", float((depth * held_ns).sum() / busy_ns) if busy_ns else 0.0
        yield "queue_depth_max", float(depth.max())


def _percentile(values: Numbers, percent: int) -> float:
    """Percentile by nearest rank, so that the result is a value that occurred."""
    return float(np.percentile(values, percent, method="inverted_cdf"))


def _depths(found: Requests) -> tuple[Numbers, Numbers]:
    """Number of requests outstanding after each submission and completion, and how long it
    lasted."""
    at_ns = np.concatenate([found.submit_ns, found.complete_ns])
    step = np.repeat([1, -1], len(found.op))
    order = np.lexsort((step, at_ns))
    return np.cumsum(step[order]), np.diff(at_ns[order], append=at_ns.max())


def _histograms(found: Requests) -> dict[str, dict[str, list[int]]]:
    return {
        name: _histogram(latencies)
        for name, ops in OPS.items()
        if len(latencies := found.latency_ns[np.isin(found.op, ops)])
    } | {"late": _histogram(found.late_ns)}


def _histogram(values: Numbers) -> dict[str, list[int]]:
    powers = np.ceil(np.log2(np.maximum(values, 1))).astype(int)
    used = range(int(powers.min()), int(powers.max()) + 1) if len(powers) else range(0)
    return {
        "at_most_ns": [1 << power for power in used],
        "requests": [int((powers == power).sum()) for power in used],
    }


def _write_timeline(path: Path, of_disks: Mapping[str, Requests]) -> None:
    """Write one row for each disk and each bin of 100 ms in which the disk had a request
    outstanding."""
    tables = [TIMELINE.empty_table()]
    for disk, found in of_disks.items():
        if not len(found.op):
            continue
        depth, held_ns = _depths(found)
        begin_ns = np.sort(np.concatenate([found.submit_ns, found.complete_ns]))
        count = int(begin_ns.max() // TIMELINE_BIN_NS) + 1
        busy_ns, depth_ns = np.zeros(count), np.zeros(count)
        for at_ns, each, ns in zip(begin_ns, depth, held_ns, strict=True):
            _spread(int(at_ns), int(ns), int(each), busy_ns, depth_ns)
        bins = np.nonzero(busy_ns)[0]
        columns = {
            "disk": np.repeat(disk, len(bins)),
            "begin_ns": bins * TIMELINE_BIN_NS,
            "utilisation": busy_ns[bins] / TIMELINE_BIN_NS,
            "queue_depth_mean": depth_ns[bins] / busy_ns[bins],
        }
        tables.append(pa.table(columns, schema=TIMELINE))
    with files.creating(path) as file:
        pq.write_table(pa.concat_tables(tables).combine_chunks(), file, compression="zstd")


def _spread(at_ns: int, ns: int, depth: int, busy_ns: Bins, depth_ns: Bins) -> None:
    """Add a span of constant depth to the bins it overlaps."""
    while ns > 0 and depth:
        index = at_ns // TIMELINE_BIN_NS
        part = min(ns, (index + 1) * TIMELINE_BIN_NS - at_ns)
        busy_ns[index] += part
        depth_ns[index] += part * depth
        at_ns, ns = at_ns + part, ns - part
