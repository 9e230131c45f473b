"""A finished run as text in rows and columns, whatever it is then written as."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fscost import stats, wear
from fscost.host import smart
from fscost.results import TOTAL, CellRecord, RunResults, written
from fscost.stats import Row, Verdict
from fscost.view.breakdown import WRITTEN, Breakdown, breakdown, way_on
from fscost.view.by_disk import by_disk
from fscost.view.grid import NOTHING, Grid, plain
from fscost.view.units import human, human_bytes, human_ratio, human_seconds

_SHOWN = (
    ("flushes", "device_flushes"),
    ("ampl", "write_amplification"),
    ("wall", "wall_s"),
    ("CPU", "cpu_s"),
    ("space", "space_used_bytes"),
)
_WORN = (("NAND", "nand_write_bytes"), ("lasts", "lifetime_years"))
"""With --ssd, in place of `_GIVEN_UP`: the table must fit 80 columns."""
_GIVEN_UP = ("cpu_s", "space_used_bytes")
_COUNTED = (("host_write_bytes", "host wrote"), ("nand_write_bytes", "NAND wrote"))
_VERDICTS = {
    Verdict.LOWER: "less",
    Verdict.HIGHER: "more",
    Verdict.NOT_SHOWN: "not shown",
    Verdict.UNDEFINED: NOTHING,
}
_LATE = {"settle_write_bytes": "after commands", "unmount_write_bytes": "at unmount"}
_TIMES = ("wall_s", "cpu_s")
_VIRTUAL = "virtual_s"
_RAM = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class View:
    """What a person is shown of a run. `problems`: what was skipped, failed or could not be
    explained, and why."""

    title: str
    summary: Grid
    about: Sequence[str]
    breakdown: Breakdown
    phases: Grid
    problems: Sequence[str]
    way_on: Sequence[str] = ()
    disks: Grid | None = None
    rows: Sequence[Row] = field(default_factory=list)


def view(results: RunResults, *, is_by_disk: bool = False) -> View:
    """Everything computed; nothing printed. `is_by_disk`: rows of each disk, and a table of
    them."""
    results = wear.with_years(results)
    manifest = results.manifest
    every = stats.summarise(_without_empty(results.samples), manifest.baseline, by_disk=is_by_disk)
    every = sorted(every, key=lambda row: manifest.profile_names.index(row.profile))
    rows = [row for row in every if not row.disk]
    shown = breakdown(results, rows, _shown_profiles(results))
    workload = manifest.workload
    return View(
        title=plain(f"{_short(manifest.name)}: {workload.get('summary') or 'a command'}"),
        summary=_summary(results, rows),
        about=[plain(line) for line in _about(results, rows)],
        breakdown=shown,
        phases=_phases(results, rows),
        problems=[*problems(results), *shown.gaps],
        way_on=way_on(results) if shown.grid.rows else [],
        disks=by_disk(every, _shown_profiles(results)) if is_by_disk else None,
        rows=every,
    )


def _without_empty(samples: pa.Table) -> pa.Table:
    """Without structures and causes that nothing in all of the run was written of: most belong to
    other file systems. The samples keep them."""
    most = samples.group_by("metric").aggregate([("value", "max")])
    largest = dict(zip(most["metric"].to_pylist(), most["value_max"].to_pylist(), strict=True))
    empty = [
        metric
        for metric in written.MEANINGS
        if largest.get(metric) == 0 and metric not in written.ALWAYS_SHOWN
    ]
    return samples.filter(
        pc.invert(pc.is_in(samples["metric"], value_set=pa.array(empty, pa.string())))
    )


def _short(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"


def _shown_profiles(results: RunResults) -> list[str]:
    done = {cell.profile for cell in results.manifest.done}
    return [name for name in results.manifest.profile_names if name in done]


def _summary(results: RunResults, rows: Sequence[Row]) -> Grid:
    totals = {(row.profile, row.metric): row for row in rows if row.phase == TOTAL}
    lines = []
    without = {entry.profile: "skipped" for entry in results.manifest.skipped} | {
        cell.profile: "failed" for cell in results.manifest.failed
    }
    shown = _shown_profiles(results)
    worn = [each for each in _WORN if any(row.metric == each[1] for row in rows)]
    columns = [*(each for each in _SHOWN if not worn or each[1] not in _GIVEN_UP), *worn]
    for profile in results.manifest.profile_names:
        if profile not in shown:
            # A row of its own, so that nobody takes what is missing for what was not asked.
            if shown and profile in without:
                lines.append(
                    [plain(profile), without[profile], *("" for _ in range(2 + len(columns)))]
                )
            continue
        written = totals.get((profile, WRITTEN))
        line = [
            plain(profile),
            NOTHING if written is None else human_bytes(written.median),
            *_against(written, results.manifest.baseline),
        ]
        for _, metric in columns:
            line.append(_value(totals.get((profile, metric))))
        lines.append(line)
    virtual = {
        metric
        for metric in _TIMES
        if any(row.metric == metric and row.unit == _VIRTUAL for row in rows)
    }
    labels = (f"virtual {label}" if metric in virtual else label for label, metric in columns)
    return Grid("", ("profile", "device written", "ratio", "verdict", *labels), lines)


def _value(row: Row | None) -> str:
    if row is None:
        return NOTHING
    text = human(row.median, row.unit)
    # A time says nothing alone: it belongs to this host and this device model.
    return f"{text} {_ratio(row)}" if row.metric == "wall_s" and row.ratio is not None else text


def _against(row: Row | None, baseline: str) -> tuple[str, str]:
    """Ratio with its interval, and whether the difference is called one."""
    if row is None:
        return NOTHING, NOTHING
    if row.profile == baseline:
        return "baseline", ""
    return _ratio(row), _VERDICTS[row.verdict or Verdict.UNDEFINED]


def _ratio(row: Row) -> str:
    """`0.81× ±1.2%`: half of the interval, relative to the ratio. The interval's ends are in the
    machine formats."""
    if row.ratio is None:
        return NOTHING
    if row.ratio_low is None or row.ratio_high is None or row.ratio == 0:
        return human_ratio(row.ratio)
    percent = (row.ratio_high - row.ratio_low) / 2 / row.ratio * 100
    width = f"{percent:.{1 if percent < 9.95 else 0}f}" if percent < 100 else ">100"
    return f"{human_ratio(row.ratio)} ±{width}%"


def _phases(results: RunResults, rows: Sequence[Row]) -> Grid:
    profiles = _shown_profiles(results)
    written = {(row.phase, row.profile): row for row in rows if row.metric == WRITTEN}
    # Totals come after the phases, and a phase that only some profiles have keeps its place.
    phases = list(
        dict.fromkeys(row.phase for row in rows if row.metric == WRITTEN and row.phase != TOTAL)
    )
    lines = []
    for phase in [*phases, TOTAL]:
        found = [written.get((phase, profile)) for profile in profiles]
        measured = any(row is not None and row.measured for row in found)
        name = plain(phase) if measured else f"({plain(phase)})"
        lines.append(
            [name, *(NOTHING if row is None else human_bytes(row.median) for row in found)]
        )
    lines += _late(rows, profiles)
    return Grid(
        "Device bytes written, by phase; those in brackets are not in the total",
        ("phase", *map(plain, profiles)),
        lines,
    )


def _late(rows: Sequence[Row], profiles: Sequence[str]) -> list[list[str]]:
    """What the total has from after the commands: it would fall elsewhere on a file system that
    stays mounted."""
    late = {
        (row.metric, row.profile): row
        for row in rows
        if row.phase == TOTAL and row.metric in _LATE and row.median > 0
    }
    found = {metric: [late.get((metric, profile)) for profile in profiles] for metric in _LATE}
    return [
        [label, *("0 B" if row is None else human_bytes(row.median) for row in found[metric])]
        for metric, label in _LATE.items()
        if any(found[metric])
    ]


def _about(results: RunResults, rows: Sequence[Row]) -> list[str]:
    manifest = results.manifest
    totals = [row for row in rows if row.phase == TOTAL and row.metric == WRITTEN]
    counts = sorted({row.n for row in totals})
    lines = []
    if counts:
        n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
        lines += [
            f"{n}, interleaved, medians.",
            *_ratio_words(manifest.baseline, {row.profile for row in totals}),
        ]
    if any(row.metric == "nand_write_bytes" for row in rows):
        lines.append(
            "NAND, lasts: replayed on the device of --ssd (docs/wear.md), runs back to back at the speed of the baseline."
        )
    if counts == [1]:
        lines.append("One repetition has no interval: nothing here is a difference.")
    return [*lines, *_deferred(results), *conditions(results)]


def _deferred(results: RunResults) -> list[str]:
    """What a mount option puts off, and this way of measuring does not."""
    manifest = results.manifest
    done = {cell.profile for cell in manifest.done}
    lazy = [
        str(profile["name"])
        for profile in manifest.profiles
        if "lazytime" in str(profile.get("mount_options", "")).split(",")
    ]
    found = [name for name in lazy if name in done]
    if not found:
        return []
    how = (
        "the unmount wrote"
        if manifest.options.get("settle") == "none"
        else "the syncs after each phase and the unmount wrote"
    )
    counted = f"{', '.join(found)}: {how} the time stamps that lazytime puts off, and their bytes are counted."
    return [counted, "On a file system that stays mounted, lazytime writes them once a day."]


def _ratio_words(baseline: str, profiles: set[str]) -> list[str]:
    """How to read the columns `ratio` and `verdict`."""
    if baseline not in profiles:
        return [f"No ratios: the baseline {baseline} has no finished cell."]
    if len(profiles) == 1:
        return []
    return [
        f"ratio: device bytes written ÷ those of {baseline}, paired by repetition, ± half its 95% interval.",
        f"verdict: a difference is called only when that interval excludes 1 and it is {stats.MINIMUM_SIZE:.0%} or more; else it is not shown.",
    ]


def conditions(results: RunResults) -> list[str]:
    """Where and on what it ran, and why it ended."""
    manifest = results.manifest
    guests = [
        cell.facts["guest"] for cell in manifest.done if isinstance(cell.facts.get("guest"), dict)
    ]
    times = "times compare only within this run"
    if any(guest.get("is_emulated") for guest in guests):
        times = "virtual times count the instructions of an emulated processor, one a nanosecond, and are times of no device"
    where = f"{_guests(manifest.environment, guests)}{_kernel(manifest.environment)}; lab {manifest.lab}"
    return [
        *_smart(manifest.environment),
        f"{where}; seed {manifest.seed}; disk {_size(manifest.options)}; {_device_model(results)}.",
        f"Bytes are exact; {times}. {_stopped(results)}",
    ]


def _smart(environment: Mapping[str, Any]) -> list[str]:
    """What a real drive counted from before the first cell until after the last one, mkfs and all
    profiles included."""
    readings = environment.get("smart")
    if not isinstance(readings, dict) or not all(
        isinstance(readings.get(when), dict) for when in ("before", "after")
    ):
        return []
    before, after = readings["before"], readings["after"]
    because = next(
        (str(each["unavailable"]) for each in (before, after) if "unavailable" in each), None
    )
    if because is not None:
        return [f"SMART: unavailable, because {because}."]
    counted = smart.difference(before, after)
    words = [f"{label} {human_bytes(counted[name])}" for name, label in _COUNTED if name in counted]
    told = ", ".join(words) or "no counter of writes"
    return [f"SMART ({after.get('model', 'unknown drive')}), in all of the run: {told}."]


def _guests(environment: Mapping[str, Any], guests: Sequence[Mapping[str, Any]]) -> str:
    """`Linux 6.12.117 in QEMU 7.2.22 (emulated) on `, of a run in virtual machines."""
    machine = environment.get("guest")
    if not guests or not isinstance(machine, dict):
        return ""
    kernels = " and ".join(sorted({str(guest.get("kernel", "unknown")) for guest in guests}))
    how = "emulated" if any(guest.get("is_emulated") for guest in guests) else "KVM"
    return f"Linux {kernels} in QEMU {machine.get('qemu', '')} ({how}) on "


def _stopped(results: RunResults) -> str:
    manifest = results.manifest
    end = {
        "finished": "Stopped",
        "interrupted": "Interrupted",
        "stopped": "Stopped early",
        "running": "Never ended",
    }[manifest.state]
    because = f": {manifest.stopped_because}" if manifest.stopped_because else ""
    return f"{end} after {human_seconds(manifest.elapsed_s)}{because}."


def _kernel(environment: dict[str, object]) -> str:
    kernel = environment.get("kernel")
    return (
        f"Linux {kernel.get('release', 'unknown')}"
        if isinstance(kernel, dict)
        else "unknown kernel"
    )


def _size(options: dict[str, object]) -> str:
    size = options.get("disk_size_bytes")
    return human_bytes(size) if isinstance(size, int) else "of unknown size"


def _device_model(results: RunResults) -> str:
    """What the disk really was: times mean nothing without it."""
    facts = next((cell.facts for cell in results.manifest.done), {})
    environment = results.manifest.environment
    model = facts.get("disk_model") or environment.get("disk_server") or "unknown disk"
    place = facts.get("recording_on") or environment.get("recordings_on")
    kind = place.get("type") if isinstance(place, dict) else None
    where = (
        ""
        if not kind or results.manifest.options.get("device")
        else " in RAM"
        if kind in _RAM
        else f" on {kind}"
    )
    return f"{model}{where}"


def problems(results: RunResults) -> list[str]:
    """What was skipped or failed, and why."""
    lines = [
        f"skipped: {entry.profile}, because {entry.because}" for entry in results.manifest.skipped
    ]
    alike: dict[tuple[str, str], list[CellRecord]] = {}
    for cell in results.manifest.failed:
        alike.setdefault((cell.profile, cell.because), []).append(cell)
    for (profile, because), cells in alike.items():
        numbers = ", ".join(str(cell.repetition) for cell in cells)
        output = "".join(
            f"\nits output: {results.folder / cell.output}" for cell in cells[:1] if cell.output
        )
        lines.append(
            f"failed: {profile}, repetition{'s' * (len(cells) > 1)} {numbers}: {because}{output}"
        )
    return [plain(line.replace("\n", "\n  ")) for line in lines]
