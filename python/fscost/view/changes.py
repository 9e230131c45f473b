"""Comparison of two runs, profile by profile: changes, regressions first, and the causes behind
them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from fscost import stats
from fscost.errors import InputError, did_you_mean
from fscost.results import METRICS, TOTAL, RunResults, written
from fscost.results.worn import NAND
from fscost.results.worn import RUNS as LIFE
from fscost.stats import Ratio, Verdict
from fscost.view import alike, work
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.summary import label, signed_change
from fscost.view.units import human, human_bytes, human_ratio, ratio_interval, signed_bytes

COMPARED = (
    WRITTEN,
    "device_write_requests",
    "device_flushes",
    "device_discard_bytes",
    NAND,
    LIFE,
)
"""Metrics that can be compared between runs. Times belong to one host at one time
(docs/measuring.md), and the causes show what each byte was. The last two need `--ssd`."""
OTHER_DEVICES = (
    "NAND bytes and life are not compared: the runs do not have the same device of --ssd;"
    " `fscost diff --ssd MODEL` models one for all runs"
)
_MOST_CAUSES = 3
_MOST_NAMED = 3
_CAUSES = {metric: name for name, metric in written.BY_CAUSE.items()} | {written.MIXED: "mixed"}
_SOME_ZERO = "zero in some repetitions and not in others, so there is no ratio"
_CONDITION = re.compile(r"\s*(\w+)\s*([<>])\s*([+-]?\d+(?:\.\d+)?)\s*(%?)\s*")


@dataclass(frozen=True)
class Change:
    """One metric of one profile: medians of both runs, and the ratio of the second to the first,
    paired by repetition."""

    profile: str
    metric: str
    unit: str
    before: float
    after: float
    n: int
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    verdict: Verdict
    causes: Mapping[str, float]
    """Increase or decrease in bytes by cause; only for `device_write_bytes`."""
    because: str = ""
    """Why there is no verdict although the values differ; empty if there is one."""

    @property
    def is_regression(self) -> bool:
        """True if a cost increased, or a life became shorter."""
        return self.verdict is (Verdict.LOWER if self.metric == LIFE else Verdict.HIGHER)

    @property
    def is_improvement(self) -> bool:
        """True if a cost decreased, or a life became longer."""
        return self.verdict is (Verdict.HIGHER if self.metric == LIFE else Verdict.LOWER)

    @property
    def cost(self) -> float:
        """Factor by which a cost increased: infinite from zero, 1 if that is unknown."""
        if self.ratio is None:
            return inf if self.verdict is Verdict.HIGHER else 1.0
        if self.metric != LIFE:
            return self.ratio
        return 1 / self.ratio if self.ratio else inf

    @property
    def ratio_text(self) -> str:
        """The ratio with both values, or only the values if there is no ratio."""
        values = f"{human(self.before, self.unit)}, then {human(self.after, self.unit)}"
        return values if self.ratio is None else f"{human_ratio(self.ratio)} ({values})"


@dataclass(frozen=True)
class Changes:
    """Changes between two runs. `changes`: regressions first, the largest first. `notes`: limits of
    the comparison, with reasons."""

    before: str
    after: str
    changes: Sequence[Change]
    notes: Sequence[str]
    unlike: Mapping[str, str]
    """What the runs did otherwise, by name, with both values."""


_LARGEST_RATIO = 2
"""Largest number without `%` in a condition: a larger one is probably a percentage."""


@dataclass(frozen=True)
class Condition:
    """A condition such as `device_write_bytes > +5%`: true of a change that is significant and
    exceeds the limit."""

    text: str
    metric: str
    is_above: bool
    ratio: float

    @staticmethod
    def parse(text: str) -> "Condition":
        """Parse a condition. With `%`, the number is a percentage of the first run, otherwise a
        ratio."""
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise InputError(
                f"{text!r} is not a condition",
                "write it as 'device_write_bytes > +5%' or '… > 1.05'",
            )
        metric, sign, number, percent = found.groups()
        if metric not in COMPARED:
            remedy = did_you_mean(metric, COMPARED) or f"one of: {', '.join(COMPARED)}"
            raise InputError(f"{metric} cannot be compared between runs", remedy)
        ratio = 1 + float(number) / 100 if percent else float(number)
        if not percent and not 0 < ratio <= _LARGEST_RATIO:
            raise InputError(
                f"{text!r} compares with {ratio:g} times the first run",
                f"write '{metric} {sign} {ratio:+g}%' for a percentage",
            )
        return Condition(plain(text), metric, sign == ">", ratio)

    def holds(self, found: Changes) -> list[Change]:
        """Return the changes for which the condition is true. Raises InputError if there are too
        few repetitions to decide."""
        chosen = [change for change in found.changes if change.metric == self.metric]
        if not chosen:
            raise InputError(
                f"--fail-if {self.text!r}: no profile has {self.metric} in both runs",
                "compare runs of the same profiles, and of one device of --ssd",
            )
        for change in chosen:
            undecided = f"--fail-if {self.text!r} cannot be decided: {change.profile}"
            if change.n < 2:
                raise InputError(
                    f"{undecided} has {change.n} repetition{'s' * (change.n != 1)} in both runs;"
                    " at least two are needed",
                    "measure both runs with --min-repetitions 3",
                )
            if change.because:
                raise InputError(
                    f"{undecided}: {change.because}",
                    f"compare the values (`fscost diff RUN RUN --metric {self.metric}`), or drop"
                    " the condition; if both runs did the same work, say so with --per",
                )
        return [change for change in chosen if self._is_beyond(change)]

    def _is_beyond(self, change: Change) -> bool:
        if change.verdict not in (Verdict.HIGHER, Verdict.LOWER):
            return False
        if change.ratio is None:  # from zero
            return self.is_above
        return change.ratio > self.ratio if self.is_above else change.ratio < self.ratio


def compared(before: RunResults, after: RunResults, *, is_per: bool = False) -> Changes:
    """Compare the second run with the first. Raises InputError for runs that cannot be compared.
    `is_per`: both did the same number of operations, even if their programs' bytes differ."""
    labs = [results.manifest.lab for results in (before, after)]
    if labs[0] != labs[1]:
        raise InputError(
            f"the runs come from different labs, {labs[0]} and {labs[1]}",
            "measure both in the same lab: `fscost compare --lab`",
        )
    values = [_values(results) for results in (before, after)]
    names = [results.manifest.profile_names for results in (before, after)]
    common = [name for name in names[0] if name in names[1]]
    is_of_one = len({str(run.manifest.request.get("ssd")) for run in (before, after)}) == 1
    if not common:
        raise InputError(
            "the runs have no profile in common",
            f"the first has {', '.join(names[0])}, the second {', '.join(names[1])}",
        )
    is_fixed = is_per or all(
        work.is_built_in(run) or run.manifest.request.get("per") for run in (before, after)
    )
    changes = [
        _change(profile, metric, *values, is_fixed=is_fixed)
        for profile in common
        for metric in COMPARED
        if is_of_one or metric not in (NAND, LIFE)
        if all((profile, metric) in each for each in values)
    ]
    changes.sort(key=lambda change: -change.cost)
    changes.sort(key=lambda change: not change.is_regression)
    unlike = alike.unlike(before.manifest, after.manifest, common)
    notes = [f"{name}: {values}" for name, values in unlike.items()]
    notes += [*_conditions(before, after), *_missing(names, values, common)]
    if not is_of_one:
        notes.append(OTHER_DEVICES)
    return Changes(
        str(before.folder), str(after.folder), changes, [plain(line) for line in notes], unlike
    )


Values = Mapping[tuple[str, str], Mapping[int, float]]


def _values(results: RunResults) -> Values:
    """Return totals by repetition, for each profile and metric."""
    wanted = {*COMPARED, *_CAUSES, work.BY_PROGRAMS}
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in results.samples.to_pylist():
        if row["phase"] == TOTAL and not row["disk"] and row["metric"] in wanted:
            found.setdefault((row["profile"], row["metric"]), {})[row["repetition"]] = row["value"]
    return found


def _change(profile: str, metric: str, before: Values, after: Values, *, is_fixed: bool) -> Change:
    key = (profile, metric)
    found, because = _judged(after[key], before[key])
    if not (because or is_fixed):
        because = _unlike(found, key, before, after)
    causes = {}
    if metric == WRITTEN:
        for cause, name in _CAUSES.items():
            more = _median(after, (profile, cause)) - _median(before, (profile, cause))
            if more:
                causes[name] = more
    return Change(
        plain(profile),
        metric,
        METRICS[metric].unit,
        _median(before, key),
        _median(after, key),
        found.n,
        found.ratio,
        found.low,
        found.high,
        Verdict.UNDEFINED if because else found.verdict,
        dict(sorted(causes.items(), key=lambda item: -abs(item[1]))),
        because,
    )


def _judged(after: Mapping[int, float], before: Mapping[int, float]) -> tuple[Ratio, str]:
    """Return the ratio with its verdict, which a first run of zeros has, too, and why there is no
    verdict."""
    found = stats.ratio(after, before)
    if found.verdict is not Verdict.UNDEFINED or not found.n:
        return found, ""
    pairs = [(before[at], after[at]) for at in before.keys() & after.keys()]
    if all(one == two for one, two in pairs):
        return replace(found, verdict=Verdict.NOT_SHOWN), ""
    is_from_zero = all(one == 0 < two for one, two in pairs)
    if is_from_zero and found.n > 1:  # One repetition shows no difference.
        return replace(found, verdict=Verdict.HIGHER), ""
    return found, "" if is_from_zero else _SOME_ZERO


def _unlike(found: Ratio, key: tuple[str, str], before: Values, after: Values) -> str:
    """Return why the ratio is no verdict: the programs wrote different amounts, and per byte of
    theirs, the verdict is another one. A change that is the same both ways is a change of the file
    system's, or of the device's."""
    programs = (key[0], work.BY_PROGRAMS)
    ends = [_median(values, programs) for values in (before, after)]
    if not work.differs(min(ends), max(ends)):
        return ""
    per_byte, _ = _judged(*(_per(values, key, programs) for values in (after, before)))
    if per_byte.verdict is found.verdict:
        return ""
    sizes = ", then ".join(human_bytes(size) for size in ends)
    changed = f", {human_ratio(per_byte.ratio)} per byte of theirs" if per_byte.ratio else ""
    return f"the programs wrote {sizes}{changed}"


def _per(values: Values, key: tuple[str, str], programs: tuple[str, str]) -> dict[int, float]:
    """Divide by the programs' bytes; a life, by their inverse."""
    bytes_of = values.get(programs, {})
    power = -1 if key[1] == LIFE else 1
    return {
        repetition: value / bytes_of[repetition] ** power
        for repetition, value in values[key].items()
        if bytes_of.get(repetition)
    }


def _median(values: Values, key: tuple[str, str]) -> float:
    found = values.get(key)
    return stats.interval([*found.values()]).median if found else 0.0


def _conditions(before: RunResults, after: RunResults) -> list[str]:
    """List differences between the places of the runs."""
    found = alike.differences(*(alike.place(run.manifest) for run in (before, after)))
    lines = [f"{name}: {values}" for name, values in found.items()]
    return [*lines, "times are not compared: they hold for one host at one moment only"]


def _missing(
    names: Sequence[Sequence[str]], values: Sequence[Values], common: Sequence[str]
) -> list[str]:
    lines = [
        f"{name} is in the {which} run only"
        for which, mine, other in (("first", *names), ("second", *reversed(names)))
        for name in mine
        if name not in other
    ]
    without = [name for name in common if not all((name, WRITTEN) in found for found in values)]
    return [*lines, *(f"{name} has no finished cell in one of the runs" for name in without)]


def grid(found: Changes) -> Grid:
    """Return a line for each change, except for metrics that are zero in both runs."""
    header = ("profile", "metric", "before", "after", "ratio", "95 % interval", "n", "verdict")
    lines = [
        [
            change.profile,
            label(change.metric),
            human(change.before, change.unit),
            human(change.after, change.unit),
            or_nothing(change.ratio, human_ratio),
            _interval(change),
            str(change.n),
            _verdict(change),
        ]
        for change in found.changes
        if change.before or change.after
    ]
    return Grid("", header, lines, left=(0, 1, 7))


def _interval(change: Change) -> str:
    if change.ratio_low is None or change.ratio_high is None:
        return NOTHING
    return ratio_interval(change.ratio_low, change.ratio_high)


def _verdict(change: Change) -> str:
    if change.is_regression:
        return "regression"
    if change.because:
        return "undecided"
    return "improvement" if change.is_improvement else change.verdict.value


def reasons(found: Changes) -> list[str]:
    """List the causes that changed most, for each shown change in bytes written."""
    lines = []
    for change in found.changes:
        if change.verdict in (Verdict.HIGHER, Verdict.LOWER) and change.causes:
            parts = [
                f"{name.replace('_', ' ')} {signed_bytes(more)}"
                for name, more in [*change.causes.items()][:_MOST_CAUSES]
            ]
            lines.append(f"{change.profile}: {', '.join(parts)}")
    return lines


def headline(found: Changes) -> str:
    """Return the answer in one sentence. Name the changes that have no verdict, and what the runs
    did otherwise."""
    undecided = "".join(
        f" Undecided: {change.profile}, {label(change.metric)} {change.ratio_text}:"
        f" {change.because}."
        for change in found.changes
        if change.because
    )
    names = [*found.unlike]
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
    unlike = f" The runs did not do the same: they differ in {', '.join(names)}." if names else ""
    return f"{_decided(found)}{undecided}{unlike}"


def _decided(found: Changes) -> str:
    regressions = [change for change in found.changes if change.is_regression]
    if not regressions:
        better = [change for change in found.changes if change.is_improvement]
        better.sort(key=lambda change: change.cost)
        lead = "No regression; " if better else ""
        return f"{lead}{_largest(better, 'improvement')}" if better else "No difference found."
    return _largest(regressions, "regression")


def _largest(changes: Sequence[Change], word: str) -> str:
    """Count the changes, and name all if they are of one profile, else the first of them, and those
    of the bytes written, which the table below shows."""
    first = changes[0]
    if len(changes) == 1:
        return f"1 {word}: {first.profile}, {_told(first)}."
    many = f"{len(changes)} {word}s"
    if len({change.profile for change in changes}) == 1:
        return f"{many} of {first.profile}: {', '.join(map(_told, changes))}."
    written = [
        f"{each.profile} {_size(each)}"
        for each in changes
        if each.metric == WRITTEN and each is not first
    ]
    if len(written) > _MOST_NAMED:
        written = [*written[:_MOST_NAMED], f"{len(written) - _MOST_NAMED} more"]
    also = f"; {label(WRITTEN)}: {', '.join(written)}" if written else ""
    return f"{many}; the largest: {first.profile}, {_told(first)}{also}."


def _told(change: Change) -> str:
    return f"{label(change.metric)} {_size(change)}"


def _size(change: Change) -> str:
    if change.ratio is None:
        return f"from zero to {human(change.after, change.unit)}"
    return signed_change(change.ratio)
