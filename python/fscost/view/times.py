"""Times of disks that have a device model, or a real device behind them: one line for each profile
and disk."""

from collections.abc import Sequence
from pathlib import Path

from fscost import files
from fscost.results import TOTAL, RunResults
from fscost.stats import Row
from fscost.view.grid import NOTHING, Grid
from fscost.view.units import human_count, human_ns

_OPS = ("read", "write", "flush")
_TITLE = "{} disks, all measured phases; latencies: median, 99th percentile"


def models(results: RunResults, profile: str) -> dict[str, str]:
    """Return the model, or the real device, of each disk of a profile that has one, by the disk's
    name."""
    found = (each for each in results.manifest.profiles if each["name"] == profile)
    disks = (disk for each in found for disk in each.get("disks", ()))
    return {disk["name"]: model_name(disk["model"]) for disk in disks if disk.get("model")}


def model_name(model: str) -> str:
    """Return the short name of a model, or the path of a real device."""
    return model if files.is_device_name(model) else Path(model).stem


def disk_times(results: RunResults, rows: Sequence[Row], profiles: Sequence[str]) -> Grid:
    """Return the times of each timed disk; no rows if there is none. `rows` includes those of each
    disk."""
    values = {(row.profile, row.disk, row.metric): row.median for row in rows if row.phase == TOTAL}
    lines = []
    kinds: set[bool] = set()
    for profile in profiles:
        of_disks = models(results, profile)
        kinds |= {files.is_device_name(model) for model in of_disks.values()}
        several = any(of == profile and disk for of, disk, _ in values)
        for disk, model in of_disks.items():

            def value(
                metric: str, profile: str = profile, disk: str = disk if several else ""
            ) -> float | None:
                return values.get((profile, disk, metric))

            latencies = [
                _both(value(f"{op}_latency_ns_p50"), value(f"{op}_latency_ns_p99")) for op in _OPS
            ]
            busy, depth = value("device_utilisation"), value("queue_depth_mean")
            late = value("reply_late_ns_p99")
            lines.append(
                [
                    profile,
                    f"{disk}: {model}",
                    *latencies,
                    NOTHING if busy is None else f"{busy * 100:.0f} %",
                    NOTHING if depth is None else human_count(round(depth, 1)),
                    NOTHING if late is None else human_ns(late),
                ]
            )
    head = ("profile", "disk: model", *_OPS, "busy", "depth", "late p99")
    title = "Modelled and real" if len(kinds) > 1 else "Real" if True in kinds else "Modelled"
    return Grid(_TITLE.format(title), head, lines, left=(0, 1))


def live_times(rows: Sequence[Row], profiles: Sequence[str]) -> Grid | None:
    """Return the live time of each profile beside the lower bound of its replay; None without
    models."""
    values = {
        (row.profile, row.metric): row.median for row in rows if row.phase == TOTAL and not row.disk
    }
    lines = [
        [profile, *(human_ns(seconds * 1e9) for seconds in times if seconds is not None)]
        for profile in profiles
        if (profile, "least_wall_s") in values
        for times in [[values.get((profile, name)) for name in ("wall_s", "least_wall_s")]]
        if None not in times
    ]
    title = "Time on these models; at least: a replay in which only flushes make requests wait"
    return Grid(title, ("profile", "time", "at least"), lines) if lines else None


def _both(median: float | None, most: float | None) -> str:
    if median is None or most is None:
        return NOTHING
    return f"{human_ns(median)}, {human_ns(most)}"
