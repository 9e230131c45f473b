"""A finished run as rows and columns of text, independent of the output format."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fscost import files, stats
from fscost.errors import InputError, did_you_mean
from fscost.results import TOTAL, CellRecord, RunResults, worn, written
from fscost.stats import Row
from fscost.view import elsewhere, outside
from fscost.view.breakdown import WRITTEN, Breakdown, breakdown, way_on
from fscost.view.by_disk import by_disk
from fscost.view.effects import effects
from fscost.view.grid import Grid, plain
from fscost.view.kernels import by_kernel, told
from fscost.view.nand import longest_first, worn_less
from fscost.view.per import Per, parse_per
from fscost.view.phases import phases
from fscost.view.power_cut import verdicts
from fscost.view.repetition import Repeated, widest
from fscost.view.single import judged, reason
from fscost.view.summary import SPACE, Ranking, headline, label, legend, ranking, table
from fscost.view.sweep import Sweep, pareto, sweeps
from fscost.view.sweep import grid as effects_of
from fscost.view.times import disk_times, live_times, models
from fscost.view.units import human_bytes, human_seconds
from fscost.view.why import cautions, why, why_title
from fscost.view.work import compared_by
from fscost.view.years import with_years

_COUNTED = (("host_write_bytes", "host wrote"), ("nand_write_bytes", "NAND wrote"))
_RAM = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class View:
    """View of a run, in order of display. `problems`: profiles and cells that were skipped, failed
    or could not be explained, with reasons. `why_title`: heading of `why`. `power_cut`: verdict on
    each profile after power cuts, if the run has them, and `power_cut_line`, which explains
    them. `summarised` returns `rows`."""

    title: str
    headline: str
    summary: Grid
    legend: Sequence[str]
    breakdown: Breakdown
    why: Sequence[str]
    cautions: Sequence[str]
    phases: Grid
    problems: Sequence[str]
    conditions: Sequence[str]
    way_on: Sequence[str] = ()
    disks: Grid | None = None
    times: Grid | None = None
    live_times: Grid | None = None
    kernels: Grid | None = None
    sweeps: Sequence[Sweep] = ()
    effects: Sequence[Grid] = ()
    pareto: Grid | None = None
    summarised: Callable[[], Sequence[Row]] = list
    why_title: str = "Why"
    power_cut: Mapping[str, str] = field(default_factory=dict)
    power_cut_line: str = ""

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Rows of all phases and metrics, for programs and charts. The tables above need few of
        them."""
        return self.summarised()


@dataclass(frozen=True)
class Choice:
    """Options of a view. If `metric` and `baseline` are empty, the run's own apply. `is_by_disk`:
    include rows of each disk, and a table of them. `pareto`: the second metric of a table of the
    best profiles; empty for none."""

    metric: str = ""
    baseline: str = ""
    is_by_disk: bool = False
    is_wide: bool = False
    per: Per | None = None
    pareto: str = ""


def view(results: RunResults, choice: Choice = Choice()) -> View:
    """Compute the view; nothing is printed."""
    results = with_years(results)
    manifest = results.manifest
    baseline = _one_of(manifest.profile_names, choice.baseline or manifest.baseline, "--baseline")
    has_models = any(models(results, name) for name in manifest.profile_names)
    with_disks = choice.is_by_disk or has_models
    samples = _without_empty(results.samples)
    every = _summarised(results, _in_tables(samples), baseline, by_disk=with_disks)
    rows = [row for row in every if not row.disk]
    per = choice.per or _per(results)
    found = ranking(results, rows, _metric(results, rows, choice.metric, per), baseline)
    shown_first = found if choice.metric else longest_first(rows, found)
    unranked = [name for name in _shown_profiles(results) if name not in found.profiles]
    order = [*shown_first.profiles, *unranked]
    is_told = any("why" in cell.facts for cell in manifest.done)
    shown = breakdown(results, rows, order, baseline)
    cut, cut_line = verdicts(results)
    summary = table(results, rows, shown_first, per, cut, is_wide=choice.is_wide)
    by_life = shown_first.profiles != found.profiles
    why_one = reason(results, rows, baseline)
    read = [
        *legend(found, rows, is_wide=choice.is_wide, why_one=why_one),
        *_worn(rows, by_life=by_life),
    ]
    read += _space(summary)
    read += filter(None, [cut_line])
    swept = sweeps(results, found.metric)
    return View(
        title=plain(f"{_short(manifest.name)}: {manifest.workload.get('summary') or 'a command'}"),
        headline=_headline(results, rows, found),
        summary=summary,
        legend=[plain(line) for line in read],
        breakdown=shown,
        why=[
            *map(plain, effects(results, rows, found)),
            *why(results, rows, found, is_wide=choice.is_wide),
            *(() if is_told else shown.shares),
        ],
        cautions=[
            *outside.cautions(results),
            *elsewhere.cautions(results),
            *cautions(results, rows, found),
            *shown.doubts,
        ],
        phases=phases(rows, order, is_wide=choice.is_wide),
        problems=[*problems(results), *shown.gaps],
        conditions=[*map(plain, conditions(results)), *elsewhere.conditions(results)],
        way_on=way_on(results) if shown.grid.rows else [],
        disks=by_disk(every, order) if choice.is_by_disk else None,
        times=disk_times(results, every, order) if has_models else None,
        live_times=live_times(every, order),
        kernels=by_kernel(results, found.metric),
        sweeps=swept,
        effects=[effects_of(sweep, is_wide=choice.is_wide) for sweep in swept],
        pareto=pareto(results, found.metric, choice.pareto) if choice.pareto else None,
        summarised=lambda: _summarised(results, samples, baseline, by_disk=choice.is_by_disk),
        why_title=why_title(results, found, is_wide=choice.is_wide),
        power_cut={plain(name): plain(verdict) for name, verdict in cut.items()},
        power_cut_line=plain(cut_line),
    )


def _summarised(
    results: RunResults, samples: pa.Table, baseline: str, *, by_disk: bool
) -> list[Row]:
    place = {name: place for place, name in enumerate(results.manifest.profile_names)}
    found = judged(results, stats.summarise(samples, baseline, by_disk=by_disk), baseline)
    return sorted(found, key=lambda row: place[row.profile])


def answer(results: RunResults) -> str:
    """Return the headline alone."""
    baseline, samples = results.manifest.baseline, results.samples
    totals = samples.filter(pc.equal(samples["phase"], TOTAL))
    rows = judged(results, stats.summarise(totals, baseline), baseline)
    metric = _metric(results, rows, "", _per(results))
    return _headline(results, rows, ranking(results, rows, metric, baseline))


def _headline(results: RunResults, rows: Sequence[Row], found: Ranking) -> str:
    changed = told(results, found.metric)
    kernel = f" Kernel {changed}." if changed else ""
    return outside.qualified(
        plain(f"{headline(found)}{worn_less(results, rows, found)}{kernel}"), results
    )


def _metric(results: RunResults, rows: Sequence[Row], chosen: str, per: Per | None) -> str:
    """Return the chosen metric, by default the metric of the run's stopping rule."""
    known = [row.metric for row in rows if row.phase == TOTAL]
    if chosen:
        return _one_of(known, chosen, "--metric")
    decided = results.manifest.stopping.get("metric")
    if isinstance(decided, str) and decided in known and decided != WRITTEN:
        return decided
    return compared_by(results, rows, is_per=per is not None)


def _per(results: RunResults) -> Per | None:
    """Return the operations that the run was started with, if valid: the manifest is untrusted."""
    asked = results.manifest.request.get("per")
    with suppress(InputError):
        return parse_per(asked) if isinstance(asked, str) else None
    return None


def _one_of(known: Sequence[str], name: str, option: str) -> str:
    names = list(dict.fromkeys(known))
    if name not in names:
        raise InputError(
            f"{option} {name!r} is unknown to this run",
            did_you_mean(name, names) or f"one of: {', '.join(names)}",
        )
    return name


def _worn(rows: Sequence[Row], *, by_life: bool) -> list[str]:
    if not any(row.metric == "nand_write_bytes" for row in rows):
        return []
    totals = {(row.profile, row.metric): row.median for row in rows if row.phase == TOTAL}
    found = widest(
        (
            profile,
            Repeated(
                totals.get((profile, "device_write_bytes"), 0),
                nand,
                totals.get((profile, worn.EXACT)),
                totals.get((profile, worn.ROAMING)),
            ),
        )
        for (profile, metric), nand in totals.items()
        if metric == worn.NAND
    )
    return [
        (
            "NAND, lasts: replayed on the device of --ssd, at the baseline's speed; `fscost wear`"
            " says what limits that life, and by how much it may be longer."
        ),
        *(["In order of life, the longest first."] if by_life else []),
        *([] if found is None else [f"{plain(found[0])}: {found[1]}"]),
    ]


def _space(summary: Grid) -> list[str]:
    is_shown = label(SPACE) in summary.header
    return ["Space taken: size of the disks − space available to users."] if is_shown else []


def _without_empty(samples: pa.Table) -> pa.Table:
    """Remove structures and causes with no bytes in the whole run: most belong to other file
    systems. The samples keep them."""
    used = set(pc.unique(samples.filter(pc.not_equal(samples["value"], 0))["metric"]).to_pylist())
    empty = [
        metric
        for metric in written.MEANINGS
        if metric not in used and metric not in written.ALWAYS_SHOWN
    ]
    return samples.filter(
        pc.invert(pc.is_in(samples["metric"], value_set=pa.array(empty, pa.string())))
    )


def _in_tables(samples: pa.Table) -> pa.Table:
    """Return the totals, and the bytes written in each phase."""
    is_total, is_written = pc.equal(samples["phase"], TOTAL), pc.equal(samples["metric"], WRITTEN)
    return samples.filter(pc.or_(is_total, is_written))


def _short(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"


def _shown_profiles(results: RunResults) -> list[str]:
    done = {cell.profile for cell in results.manifest.done}
    return [name for name in results.manifest.profile_names if name in done]


def conditions(results: RunResults) -> list[str]:
    """Describe where and on what the run took place, and why it ended."""
    manifest = results.manifest
    guests = [
        cell.facts["guest"] for cell in manifest.done if isinstance(cell.facts.get("guest"), dict)
    ]
    times = "times are comparable only within this run"
    if any(guest.get("is_emulated") for guest in guests):
        times = (
            "virtual times count the instructions of an emulated processor, "
            "one per nanosecond, and are not the times of any device"
        )
    release = kernel_release(manifest.environment)
    kernel = "unknown kernel" if release is None else f"Linux {release}"
    where = f"{_guests(manifest.environment, guests)}{kernel}; lab {manifest.lab}"
    return [
        *_smart(manifest.environment),
        (
            f"{where}; seed {manifest.seed}; disk"
            f" {_size(manifest.options)}{_condition(manifest.request)}; {_device_model(results)}."
        ),
        f"The bytes of each repetition are exact; {times}. {_stopped(results)}",
    ]


def _smart(environment: Mapping[str, Any]) -> list[str]:
    """Report the counters of a real drive, from before the first cell until after the last one,
    including mkfs and all profiles."""
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
    from fscost.host import smart

    counted = smart.difference(before, after)
    words = [f"{label} {human_bytes(counted[name])}" for name, label in _COUNTED if name in counted]
    told = ", ".join(words) or "no write counter"
    return [f"SMART ({after.get('model', 'unknown drive')}), over the whole run: {told}."]


def _guests(environment: Mapping[str, Any], guests: Sequence[Mapping[str, Any]]) -> str:
    """Describe the guests of a run in virtual machines: `Linux 6.12.117 in QEMU 7.2.22 (emulated)
    on `."""
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
        "running": "Unfinished",
    }[manifest.state]
    because = f": {manifest.stopped_because}" if manifest.stopped_because else ""
    return f"{end} after {human_seconds(manifest.elapsed_s)}{because}."


def kernel_release(environment: Mapping[str, Any]) -> str | None:
    """Return the release of the machine's kernel; None if the environment names no kernel."""
    kernel = environment.get("kernel")
    return str(kernel.get("release", "unknown")) if isinstance(kernel, dict) else None


def _condition(request: Mapping[str, Any]) -> str:
    """Describe the disk's content before the workload, if it was requested. The manifest is
    untrusted."""
    words = []
    if request.get("fill"):
        words.append(f"filled to {str(request['fill']).removesuffix('%')} %")
    if request.get("age"):
        words.append(f"churned {request['age']} times")
    days = request.get("aged")
    if days and isinstance(days, int | float):
        words.append(f"prepared files {days:g} days old")
    return f" ({', '.join(words)})" if words else ""


def _size(options: dict[str, object]) -> str:
    size = options.get("disk_size_bytes")
    return human_bytes(size) if isinstance(size, int) else "of unknown size"


def _device_model(results: RunResults) -> str:
    """Describe the disk, without which times mean nothing."""
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
    of_profiles = (models(results, name) for name in results.manifest.profile_names)
    timed = [
        f"{disk} {'is' if files.is_device_name(name) else 'timed as'} {name}"
        for each in of_profiles
        for disk, name in each.items()
    ]
    return "; ".join(dict.fromkeys([f"{model}{where}", *timed]))


def problems(results: RunResults) -> list[str]:
    """List what was skipped or failed, with reasons."""
    skipped: dict[str, list[str]] = {}
    for entry in results.manifest.skipped:
        skipped.setdefault(entry.because, []).append(entry.profile)
    lines = [f"skipped: {', '.join(names)}, because {why}" for why, names in skipped.items()]
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
    lines += _not_computed(results)
    return [plain(line.replace("\n", "\n  ")) for line in lines]


def _not_computed(results: RunResults) -> Iterator[str]:
    """Yield what could not be computed of a cell. A manifest is untrusted."""
    alike: dict[tuple[str, str], dict[str, None]] = {}
    for cell in results.manifest.done:
        match cell.facts.get("not_computed"):
            case dict() as reasons:
                for what, because in reasons.items():
                    alike.setdefault((str(what), str(because)), {})[cell.profile] = None
    for (what, because), profiles in alike.items():
        yield f"not computed: {what} of {', '.join(profiles)}: {because}"
