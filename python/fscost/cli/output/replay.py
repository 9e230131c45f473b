"""Output of replays: for a terminal, as Markdown, CSV and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fscost.cli.output.emit import Outputs
from fscost.latency import OPS, DiskTimes, Latencies, Replay
from fscost.report import document
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.units import human_seconds, human_share

_PERCENTS = (50, 90, 99, 99.9)


@dataclass(frozen=True)
class Entry:
    """One repetition of a profile, or a standalone recording."""

    profile: str
    repetition: int
    replay: Replay


@dataclass(frozen=True)
class Report:
    """Contents of the output of `fscost replay`."""

    source: str
    entries: Sequence[Entry]
    is_trace: bool = False

    def groups(self) -> list[list[Entry]]:
        """Return the repetitions of each profile."""
        found: dict[str, list[Entry]] = {}
        for each in self.entries:
            found.setdefault(each.profile, []).append(each)
        return list(found.values())


def emit(report: Report, outputs: Outputs) -> None:
    """Write the report to each requested destination."""
    outputs.emit_tables(
        _title(report),
        list(_grids(report)),
        list(_notes(report)),
        json=lambda: _json_text(report),
        rows=lambda: [
            _values(each) | _disk_values(disk)
            for each in report.entries
            for disk in each.replay.disks
        ],
        lead=list(_lead(report)),
    )


def _lead(report: Report) -> Iterator[str]:
    """Yield both times of each profile, and when each is near a live run's. The recorded disk
    answers each request before the next one arrives, so the recording cannot tell a queue."""
    for group in report.groups():
        least_s, closed_s = (
            median(getattr(each.replay, name) for each in group) for name in ("least_s", "closed_s")
        )
        name = f"{group[0].profile}: " if group[0].profile else ""
        if report.is_trace:
            yield plain(
                f"{human_seconds(least_s)} with each request at its own time in the trace;"
                f" {human_seconds(closed_s)} if each waits for the one before it."
            )
        elif human_seconds(least_s) == human_seconds(closed_s):
            yield plain(f"{name}{human_seconds(least_s)}, whether or not requests are queued.")
        else:
            yield plain(
                f"{name}{human_seconds(least_s)} if the program queues its requests (writeback,"
                f" threads, fio with an iodepth); {human_seconds(closed_s)} if it waits for each."
            )


def _title(report: Report) -> str:
    disks = report.entries[0].replay.disks if report.entries else ()
    models = ", ".join(f"{each.disk} = {each.model}" for each in disks)
    return plain(f"{report.source}, modelled: {models}")


def _grids(report: Report) -> Iterator[Grid]:
    rows = []
    for group in report.groups():
        disks = group[0].replay.disks
        times = [
            median(getattr(each.replay, name) for each in group)
            for name in ("recorded_s", "least_s", "closed_s")
        ]
        rows.append(
            [
                plain(group[0].profile) or NOTHING,
                str(len(group)),
                *map(human_seconds, times),
                *(or_nothing(each.utilisation, human_share) for each in disks),
                *(or_nothing(each.queue_depth, "{:.2f}".format) for each in disks),
            ]
        )
    disks = report.entries[0].replay.disks if report.entries else ()
    header = ("profile", "n", "traced" if report.is_trace else "recorded", "at least", "in order")
    utilised = (f"{each.disk} busy" for each in disks)
    depths = (f"{each.disk} queue" for each in disks)
    yield Grid("", (*header, *utilised, *depths), rows)
    for group in report.groups():
        for disk in group[0].replay.disks:
            yield _latency_grid(group[0].profile, disk)


def _latency_grid(profile: str, disk: DiskTimes) -> Grid:
    title = plain(f"{profile + ': ' if profile else ''}latency on {disk.disk} = {disk.model}")
    header = ("request", "count", "mean", *(f"p{each:g}" for each in _PERCENTS), "most")
    return Grid(
        title,
        header,
        [
            [op, f"{found.count:,}", *(or_nothing(ns, _time) for ns in _figures(found).values())]
            for op, found in disk.latencies.items()
            if found.count
        ],
    )


def _figures(found: Latencies) -> dict[str, float | None]:
    """Mean, percentiles and maximum, by name."""
    return {
        "mean": found.mean_ns,
        **{f"p{each:g}": found.percentile_ns(each) for each in _PERCENTS},
        "max": found.max_ns if found.count else None,
    }


def _time(ns: float) -> str:
    return human_seconds(ns / 1e9)


def _notes(report: Report) -> Iterator[str]:
    if not report.entries:
        return
    if report.is_trace:
        yield "traced: from the first request to the last. The other times are modelled."
        yield "at least: each request at its own time; flushes and FUA make others wait."
        yield "in order: each also waits for the one before it, and then for the time between them."
        return
    yield "recorded: on the recorded disk, as fast as memory. The other times are modelled."
    yield (
        "at least: only flushes and FUA make requests wait. A lower bound; within 3 % of a live run"
        " for 32 random reads at a time on hdd-7200."
    )
    yield (
        "in order: requests also wait for all that completed earlier in the recording; 2.6 times"
        " too long for 32 random reads at a time (docs/time.md)."
    )


def _values(entry: Entry) -> dict[str, Any]:
    found = entry.replay
    return {
        "profile": entry.profile,
        "repetition": entry.repetition,
        "recorded_s": found.recorded_s,
        "modelled_least_s": found.least_s,
        "modelled_s": found.closed_s,
    }


def _disk_values(disk: DiskTimes) -> dict[str, Any]:
    return {
        "disk": disk.disk,
        "model": disk.model,
        "busy_s": disk.busy_s,
        "utilisation": disk.utilisation,
        "queue_depth": disk.queue_depth,
    } | {
        f"{op}_latency_ns_{name}": value
        for op in OPS
        for name, value in _figures(disk.latencies[op]).items()
    }


def _json_text(report: Report) -> str:
    entries = [
        _values(each)
        | {
            "disks": [
                _disk_values(disk)
                | {
                    "latency_histograms": {
                        op: [list(bucket) for bucket in disk.latencies[op].buckets] for op in OPS
                    }
                }
                for disk in each.replay.disks
            ]
        }
        for each in report.entries
    ]
    return document.text("replay", {"source": report.source, "entries": entries})
