"""Comparison of several runs side by side: the bytes of each profile in each run, and the ratio to
the first run, or, for runs of different workloads, to the baseline of the same run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fscost import stats
from fscost.errors import InputError
from fscost.results import METRICS, RunResults
from fscost.results.worn import NAND, YEARS
from fscost.results.worn import RUNS as LIFE
from fscost.stats import Ratio
from fscost.view import years
from fscost.view.breakdown import WRITTEN
from fscost.view.changes import OTHER_DEVICES
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.per import Per
from fscost.view.run import kernel_release
from fscost.view.summary import SAME, changed, is_divided, label
from fscost.view.units import human, human_ratio, plain_ratio, ratio_interval

_MODELLED = {
    NAND: "NAND bytes on the device of --ssd",
    LIFE: "Runs until the device of --ssd is worn out",
    YEARS: "Time until then, back to back",
}
"""Metrics of a modelled device, whose order need not be that of the bytes written."""


_WIDE = ("n", "ratio", "95 % interval", "verdict")


@dataclass(frozen=True)
class Relation:
    """Comparison of several runs. `rows`: one for each profile and run, with the ratio to the same
    profile of the first run. `modelled`: the same for NAND bytes and life, by metric, if the runs
    have them."""

    title: str
    grid: Grid
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]] = field(default_factory=list)
    modelled: Mapping[str, "Relation"] = field(default_factory=dict)

    @property
    def parts(self) -> list[Grid | str]:
        """Return the tables, and the notes below them."""
        others = (part for each in self.modelled.values() for part in (each.title, each.grid))
        return [self.grid, *others, *self.notes]


def relation(
    runs: Mapping[str, RunResults],
    metric: str = WRITTEN,
    per: Per | None = None,
    *,
    is_wide: bool = False,
) -> Relation:
    """Compare two or more runs, by name; wide tables have the intervals and verdicts of the ratios.
    Bytes and counts can be compared between runs; times cannot."""
    _check(runs, metric)
    return _by_each(
        runs,
        metric,
        lambda each: _compared(
            runs,
            each,
            per if each in (metric, NAND) and is_divided(each) else None,
            is_wide=is_wide,
        ),
    )


def _by_each(
    runs: Mapping[str, RunResults], metric: str, compared: Callable[[str], Relation]
) -> Relation:
    """Compare the runs by the metric, and by each metric of the device of --ssd that one of them
    has."""
    is_of_one = len({str(run.manifest.request.get("ssd")) for run in runs.values()}) == 1
    others = [
        each
        for each in _MODELLED
        if each != metric and any(_values(run, each) for run in runs.values())
    ]
    modelled = {
        each: replace(compared(each), title=f"{_MODELLED[each]}:") for each in others if is_of_one
    }
    found = compared(metric)
    if others and not is_of_one:
        found = replace(found, notes=[*found.notes, f"{OTHER_DEVICES}."])
    return replace(
        found, modelled=modelled, notes=[*found.notes, *_signs([found, *modelled.values()])]
    )


def _signs(relations: Sequence[Relation]) -> list[str]:
    """Explain the signs that the tables have."""
    cells = {
        line[column]
        for each in relations
        for line in each.grid.rows
        for column in each.grid.changes
    }
    notes = {
        SAME: f"{SAME}: no difference found.",
        "(": "In brackets: not significant; a single repetition has no interval.",
    }
    return [note for sign, note in notes.items() if any(cell.startswith(sign) for cell in cells)]


def _compared(
    runs: Mapping[str, RunResults], metric: str, per: Per | None, *, is_wide: bool
) -> Relation:
    unit = METRICS[metric].unit
    values = {name: _values(run, metric) for name, run in runs.items()}
    first = next(iter(runs))
    profiles = list(dict.fromkeys(name for found in values.values() for name in found))
    lines, rows = [], []
    for profile in profiles:
        line, changes = [profile], []
        wide: list[str] = []
        for name, found in values.items():
            mine = found.get(profile, {})
            ratio = stats.ratio(mine, values[first].get(profile, {}))
            line.append(_value(mine, unit, per))
            if name != first:
                changes.append(_change(ratio, is_there=bool(mine)))
                wide += _decided(ratio, is_there=bool(mine)) if is_wide else ()
            if mine:
                rows.append(_row(profile, name, mine, ratio, is_first=name == first))
        lines.append([*line, *changes, *wide])
    others = [name for name in runs if name != first]
    header = [
        "profile",
        *runs,
        *(f"{name} vs {first}" for name in others),
        *(
            word if len(others) == 1 else f"{name}: {word}"
            for name in others
            for word in (_WIDE if is_wide else ())
        ),
    ]
    changes_from = 1 + len(runs)
    title = f"{label(metric)}{f' per {per.word}' if per else ''}"
    grid = Grid("", header, lines, changes=range(changes_from, changes_from + len(others)))
    return Relation(title, grid, _notes(runs), rows)


def with_years(runs: Sequence[RunResults]) -> list[RunResults]:
    """Add the life in years to runs with `--ssd`. All have the speed of the first run's baseline,
    so that their lives differ by wear alone."""
    return [years.with_years(run, runs[0]) for run in runs]


def life(found: Relation, first: RunResults) -> list[str]:
    """Return the answer about life on the device of `--ssd` for two runs, in years if the speed of
    the first run is known; empty if a run has no life."""
    in_years = found.modelled.get(YEARS)
    related = in_years or found.modelled.get(LIFE)
    told = [] if related is None else _lives(related, METRICS[YEARS if in_years else LIFE].unit)
    if not told:
        return []
    speed = f"at the speed of {first.manifest.baseline} in the first run"
    back_to_back = f", back to back {speed}" if in_years else ""
    return [plain(f"Life: the --ssd device would last {'; '.join(told)}{back_to_back}.")]


def _lives(related: Relation, unit: str) -> list[str]:
    word = "" if unit == METRICS[YEARS].unit else " runs"
    by_profile: dict[str, list[Mapping[str, Any]]] = {}
    for row in related.rows:
        by_profile.setdefault(row["profile"], []).append(row)
    return [
        f"{human(before['median'], unit)}{word} under {profile}, then"
        f" {human(after['median'], unit)}{word} ({human_ratio(after['ratio'])})"
        for profile, [before, *others] in by_profile.items()
        for after in others
        if after["ratio"] is not None
    ]


def within(runs: Mapping[str, RunResults], metric: str, pers: Mapping[str, Per | None]) -> Relation:
    """Compare the profiles of each run with its baseline. Workloads that do different things are
    not compared with each other."""
    _check(runs, metric)
    return _by_each(
        runs,
        metric,
        lambda each: _within(
            runs, each, pers if each in (metric, NAND) and is_divided(each) else {}
        ),
    )


def _within(
    runs: Mapping[str, RunResults], metric: str, pers: Mapping[str, Per | None]
) -> Relation:
    unit = METRICS[metric].unit
    profiles = list(dict.fromkeys(name for run in runs.values() for name in _values(run, metric)))
    baselines = list(dict.fromkeys(run.manifest.baseline for run in runs.values()))
    others = [name for name in profiles if baselines != [name]]
    lines, rows = [], []
    for workload, run in runs.items():
        found, baseline, per = _values(run, metric), run.manifest.baseline, pers.get(workload)
        ratios = {name: stats.ratio(mine, found.get(baseline, {})) for name, mine in found.items()}
        lines.append(
            [
                f"{workload}, per {per.word}" if per else workload,
                *(_value(found.get(name, {}), unit, per) for name in profiles),
                *(_against(name, baseline, ratios) for name in others),
            ]
        )
        rows += [
            _row(name, workload, mine, ratios[name], is_first=name == baseline)
            for name, mine in found.items()
        ]
    against = f"vs {baselines[0]}" if len(baselines) == 1 else "vs baseline"
    header = ["workload", *profiles, *(f"{name} {against}" for name in others)]
    changes = range(1 + len(profiles), len(header))
    notes = [
        "Medians; changes are relative to the baseline of the same workload, paired by repetition.",
        *_notes(runs)[1:],
    ]
    return Relation(label(metric), Grid("", header, lines, changes=changes), notes, rows)


def _against(profile: str, baseline: str, ratios: Mapping[str, Ratio]) -> str:
    if profile == baseline:
        return "baseline"
    return _change(ratios[profile], is_there=True) if profile in ratios else NOTHING


def _check(runs: Mapping[str, RunResults], metric: str) -> None:
    if metric not in METRICS:
        raise InputError(
            f"--metric {metric!r} is unknown",
            f"one of those that `fscost show RUN --csv -` lists, for example {WRITTEN}",
        )
    if METRICS[metric].is_time:
        raise InputError(
            f"{metric} is a time: times are comparable only within one run",
            f"compare bytes or counts, for example {WRITTEN}",
        )
    if metric == YEARS and not any(_values(run, YEARS) for run in runs.values()):
        raise InputError(
            f"{YEARS} is known only for a device",
            "name the device, of runs that kept recordings: `fscost diff --ssd MODEL`",
        )
    devices = {name: str(run.manifest.request.get("ssd")) for name, run in runs.items()}
    if metric in _MODELLED and len(set(devices.values())) > 1:
        where = ", ".join(f"{name}: {device}" for name, device in devices.items())
        raise InputError(
            f"{metric} of different devices cannot be compared ({where})",
            "model one device for all: `fscost diff --ssd MODEL`",
        )
    labs = {name: run.manifest.lab for name, run in runs.items()}
    if len(set(labs.values())) > 1:
        where = ", ".join(f"{name}: {lab}" for name, lab in labs.items())
        raise InputError(
            f"runs of different labs cannot be compared ({where})",
            "repeat one of them with --lab",
        )


def _values(run: RunResults, metric: str) -> dict[str, dict[int, float]]:
    """Return totals by profile and repetition, in the order in which the profiles were named."""
    found = stats.by_repetition(run.samples, metric)
    return {name: found[name] for name in run.manifest.profile_names if name in found}


def _value(values: Mapping[int, float], unit: str, per: Per | None) -> str:
    if not values:
        return NOTHING
    median = stats.interval(list(values.values())).median
    return human(median / per.count if per else median, unit)


def _change(ratio: Ratio, *, is_there: bool) -> str:
    if not is_there or ratio.ratio is None:
        return NOTHING
    return changed(ratio.ratio, ratio.verdict, ratio.n)


def _decided(ratio: Ratio, *, is_there: bool) -> tuple[str, ...]:
    """Return the number of pairs, the ratio, its interval and the verdict."""
    if not is_there:
        return (NOTHING,) * len(_WIDE)
    interval = NOTHING
    if ratio.low is not None and ratio.high is not None:
        interval = ratio_interval(ratio.low, ratio.high)
    value = or_nothing(ratio.ratio, plain_ratio)
    return str(ratio.n), value, interval, ratio.verdict.value


def _row(
    profile: str, run: str, values: Mapping[int, float], ratio: Ratio, *, is_first: bool
) -> dict[str, Any]:
    found = stats.interval(list(values.values()))
    row: dict[str, Any] = {
        "profile": profile,
        "run": run,
        **vars(found),
    }
    if not is_first:
        row |= {
            "ratio": ratio.ratio,
            "ratio_low": ratio.low,
            "ratio_high": ratio.high,
            "verdict": ratio.verdict.value,
        }
    return row


def _notes(runs: Mapping[str, RunResults]) -> list[str]:
    """Explain how to read the table, and list differences between the runs that their names do not
    show."""
    first = next(iter(runs))
    notes = [f"Medians of each run; changes are relative to {first}, paired by repetition."]
    kernels = {
        name: kernel_release(run.manifest.environment) or "unknown" for name, run in runs.items()
    }
    if len(set(kernels.values())) > 1:
        told = ", ".join(f"{name}: {kernel}" for name, kernel in kernels.items())
        notes.append(f"The kernels differ: {told}.")
    return [plain(note) for note in notes]
