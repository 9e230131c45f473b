"""Summary of a run: the best profile and its lead, in a sentence and in a table with one number per
column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fscost import stats
from fscost.results import METRICS, TOTAL, RunResults
from fscost.results.worn import NAND
from fscost.stats import Row, Verdict
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import NOTHING, Grid
from fscost.view.per import Per
from fscost.view.units import human, human_ratio, ratio_interval

SAME = "≈"
"""Mark for no difference found."""
HOPELESS = "~"
"""Mark that replaces a ratio whose interval is wider than `_HOPELESS_WIDTH`."""
_HOPELESS_WIDTH = 0.5
_TOO_SMALL = 0.0005
"""Change that would be printed as 0.0 %."""
SPACE = "space_taken_bytes"
_SPACE_APART = 0.01
"""Relative difference between profiles from which space is in the table that is not wide."""
_LABELS = {
    WRITTEN: "written",
    "device_write_requests": "requests",
    "device_flushes": "flushes",
    "wall_s": "time",
    "cpu_s": "CPU",
    "nand_write_bytes": "NAND",
    "lifetime_runs": "life in runs",
    "lifetime_years": "lasts",
    "write_amplification": "amplification",
    "space_used_bytes": "space used",
    SPACE: "space taken",
    "space_overhead_bytes": "overhead",
    "space_reserved_bytes": "reserved",
    "device_read_bytes": "read",
    "sync_calls": "syncs",
    "fsync_latency_ns_p50": "fsync p50",
    "fsync_latency_ns_p99": "fsync p99",
    "fsync_latency_ns_max": "longest fsync",
    "pause_s_p99": "pause p99",
    "pause_s_max": "longest pause",
}
_SHOWN = (
    "device_write_requests",
    "device_flushes",
    "nand_write_bytes",
    "lifetime_years",
    "wall_s",
    "cpu_s",
)
_FSYNC = ("fsync_latency_ns_p50", "fsync_latency_ns_p99")
_WIDE = ("device_read_bytes", "sync_calls", *_FSYNC, "write_amplification")
_PARTS = ("space_overhead_bytes", "space_reserved_bytes", "space_used_bytes")
"""Parts of the space taken."""
_NOISY = ("wall_s", "cpu_s", *_FSYNC)
_LONGEST_IN_HEADER = 14
_MOST_NAMED = 2
_MANY_SYNCS = 100
"""Number of fsyncs from which they dominate the workload's waiting time."""


@dataclass(frozen=True)
class Ranking:
    """Ranking of the profiles that finished, the lowest value of `metric` first. `ties`: the first
    profile and all that do not differ from it."""

    metric: str
    baseline: str
    rows: Sequence[Row]
    ties: Sequence[str]

    @property
    def profiles(self) -> list[str]:
        """Profiles in order."""
        return [row.profile for row in self.rows]

    @property
    def label(self) -> str:
        """Name of the metric above its column."""
        virtual = "virtual " if any(row.unit.startswith("virtual_") for row in self.rows) else ""
        return virtual + label(self.metric)


def label(metric: str) -> str:
    """Return a metric's short name."""
    return _LABELS.get(metric, metric.removesuffix("_bytes").replace("_", " "))


def ranking(results: RunResults, rows: Sequence[Row], metric: str, baseline: str) -> Ranking:
    """Rank by the totals of `metric`. Profiles that tie keep the order in which they were named."""
    found = sorted(
        (row for row in rows if row.phase == TOTAL and row.metric == metric),
        key=lambda row: row.median,
    )
    if not found:
        return Ranking(metric, baseline, [], [])
    values = stats.by_repetition(results.samples, metric)
    first = found[0].profile
    ties = [
        row.profile
        for row in found
        if row.median == found[0].median or _is_tie(values[row.profile], values[first])
    ]
    return Ranking(metric, baseline, found, ties)


def _is_tie(values: Mapping[int, float], least: Mapping[int, float]) -> bool:
    return stats.ratio(values, least).verdict is Verdict.NOT_SHOWN


def headline(found: Ranking) -> str:
    """Return one to three sentences: the first profile, its lead and its certainty, and the last
    profile."""
    if not found.rows:
        return ""
    first = found.rows[0]
    value = human(first.median, first.unit)
    is_written = found.metric == WRITTEN
    if len(found.rows) == 1:
        return (
            f"{first.profile} wrote {value}."
            if is_written
            else f"{first.profile}: {found.label} {value}."
        )
    of_metric = "" if is_written else f" {found.label}"
    if max(row.n for row in found.rows) == 1:
        is_told = any(row.ratio_low is not None for row in found.rows)
        because = "" if is_told else "One repetition, so no difference can be reported. "
        least = _listed([row.profile for row in found.rows if row.median == first.median])
        return f"{because}Lowest{of_metric}: {least}, {value}{_against(first, found)}."
    if all(_is_near(row, first) for row in found.rows):
        return _all_alike(found)
    near = [row.profile for row in found.rows if row.profile in found.ties and _is_near(row, first)]
    if len(near) == len(found.ties):
        lowest = f"Lowest {found.label}: {_listed(near)},"
        subject = f"{_listed(near)} wrote the least:" if is_written else lowest
        sentences = [f"{subject} {value}{_against(first, found)}."]
    else:
        sentences = list(_uncertain(found))
    last = found.rows[-1]
    if last.profile not in found.ties and last.verdict is Verdict.HIGHER:
        highest = f"Highest {found.label}: {last.profile},"
        subject = f"{last.profile} wrote the most:" if is_written else highest
        much = f"{human(last.median, last.unit)}, {_change(last.ratio)} {found.baseline}"
        sentences.append(f"{subject} {much}.")
    return " ".join(sentences)


def _is_near(row: Row, first: Row) -> bool:
    """Check that the medians are closer than the minimum size of a difference, whether or not one
    is certain."""
    return row.median <= first.median * (1 + stats.MINIMUM_SIZE)


def _is_certain(row: Row) -> bool:
    """Check that the interval contains no ratio that would count as a difference."""
    low, high = row.ratio_low, row.ratio_high
    return (
        low is not None
        and high is not None
        and 1 - stats.MINIMUM_SIZE < low <= high < 1 + stats.MINIMUM_SIZE
    )


def _all_alike(found: Ranking) -> str:
    is_written = found.metric == WRITTEN
    where = "" if is_written else f" in {found.label}"
    subject = "every profile wrote" if is_written else "for every profile,"
    low, high = (human(row.median, row.unit) for row in (found.rows[0], found.rows[-1]))
    if not all(_is_certain(row) for row in found.rows if row.profile != found.baseline):
        return f"No difference found{where}: {subject} about {low}."
    if low == high:
        return f"No difference{where}: {subject} {low}."
    least = f"{stats.MINIMUM_SIZE * 100:.0f} %"
    return f"No difference{where} of {least} or more: {subject} {low} to {high}."


def _against(row: Row, found: Ranking) -> str:
    """Return the change against the baseline, if it is lower. Profiles that tie with the first may
    differ from the baseline by another share, or not at all."""
    is_told = row.verdict is Verdict.LOWER and found.baseline in found.profiles
    return f", {_change(row.ratio)} {found.baseline}" if is_told else ""


def _uncertain(found: Ranking) -> Iterator[str]:
    """Yield the certain part of the answer if the lowest median may be due to chance."""
    first = found.rows[0]
    value = human(first.median, first.unit)
    of_metric = "" if found.metric == WRITTEN else f" {found.label}"
    others = [name for name in found.ties if name != first.profile]
    if len(others) > _MOST_NAMED:
        others = [*others[:_MOST_NAMED], f"{len(others) - _MOST_NAMED} more"]
    yield (
        f"Lowest median{of_metric}: {first.profile}, {value}{_against(first, found)}; "
        f"a difference from {_listed(others)} is not certain."
    )
    lower = (row for row in found.rows[1:] if row.verdict is Verdict.LOWER)
    best = next(lower, None)
    if best is not None and first.verdict is not Verdict.LOWER:
        subject = (
            f"{best.profile} wrote"
            if found.metric == WRITTEN
            else f"{found.label} of {best.profile}:"
        )
        yield f"Certain: {subject} {_change(best.ratio)} {found.baseline}."


def _change(ratio: float | None) -> str:
    """Format a change in words: 21 % less than, 8.8 times as much as."""
    if ratio is None:
        return "compared with"
    if ratio >= 2:
        return f"{human_ratio(ratio).removesuffix('×')} times as much as"
    return f"{percent(ratio)} {'less' if ratio < 1 else 'more'} than"


def percent(ratio: float) -> str:
    """Format the distance of a ratio from 1 as a percentage."""
    size = abs(ratio - 1) * 100
    if 0 < ratio < 1 and size >= 99.5:
        return f"{min(size, 99.9):.1f} %"
    return f"{size:.0f} %" if size >= 9.95 else f"{size:.1f} %"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def table(
    results: RunResults,
    rows: Sequence[Row],
    found: Ranking,
    per: Per | None,
    verdicts: Mapping[str, str],
    *,
    is_wide: bool,
) -> Grid:
    """Build the table: one row per profile in order of the ranking, then the profiles without a
    value, with the reason. `verdicts`: after power cuts, if the run has them."""
    totals = {(row.profile, row.metric): row for row in rows if row.phase == TOTAL}
    ran = list(dict.fromkeys(row.profile for row in rows))
    profiles = [*found.profiles, *(name for name in ran if name not in found.profiles)]
    syncs = [totals.get((name, "sync_calls")) for name in profiles]
    is_synced = any(row is not None and row.median >= _MANY_SYNCS for row in syncs)
    chosen = (
        *((WRITTEN,) if found.metric != WRITTEN else ()),
        *_SHOWN,
        *(_FSYNC[1:] if is_synced and not is_wide else ()),
        *((SPACE,) if is_wide or _differs_in_space(totals, profiles) else ()),
        *((*_WIDE, *_PARTS) if is_wide else ()),
    )
    metrics = [
        metric
        for metric in chosen
        if metric != found.metric and any(_is_told(totals.get((name, metric))) for name in profiles)
    ]
    against = f"vs {found.baseline}" if len(found.baseline) <= _LONGEST_IN_HEADER else "vs baseline"
    each = () if per is None else (f"per {per.word}",)
    safe = ("power cut",) if verdicts else ()
    extra = ("ratio", "95 % interval", "verdict") if is_wide else ()
    header = [
        "profile",
        found.label,
        against,
        *safe,
        *each,
        *extra,
        *(_header(metric, totals) for metric in metrics),
    ]
    lines = []
    for name in profiles:
        row = totals.get((name, found.metric))
        value = NOTHING if row is None else human(row.median, row.unit)
        shares = () if per is None else (_share(row, per),)
        wide = _interval(row, found.baseline) if is_wide else ()
        values = (_value(totals.get((name, metric)), found.baseline) for metric in metrics)
        cut = (verdicts.get(name, NOTHING),) if verdicts else ()
        lines.append([name, value, change(row, found.baseline), *cut, *shares, *wide, *values])
    missing = {entry.profile: "skipped" for entry in results.manifest.skipped} | {
        cell.profile: "failed" for cell in results.manifest.failed
    }
    if lines:
        # Separate rows, so that missing profiles are not mistaken for ones that were not requested.
        lines += [
            [name, why, *[""] * (len(header) - 2)]
            for name, why in missing.items()
            if name not in profiles
        ]
    return Grid(
        "",
        header,
        lines,
        needed=len(header) if is_wide else 3 + len(safe) + len(each),
        changes=(2,),
    )


def _differs_in_space(totals: Mapping[tuple[str, str], Row], profiles: Sequence[str]) -> bool:
    taken = [row.median for name in profiles if (row := totals.get((name, SPACE))) is not None]
    return bool(taken) and max(taken) > (1 + _SPACE_APART) * min(taken)


def _share(row: Row | None, per: Per) -> str:
    """Divide by the number of operations, if the metric is a sum: a percentile, a ratio or a life
    is not."""
    if row is None or not is_divided(row.metric):
        return NOTHING
    return human(row.median / per.count, row.unit)


def is_divided(metric: str) -> bool:
    """True for metrics of which each operation has a part."""
    return metric == NAND or (metric in METRICS and METRICS[metric].additive)


def _is_told(row: Row | None) -> bool:
    return row is not None and row.median != 0


def _header(metric: str, totals: Mapping[tuple[str, str], Row]) -> str:
    units = (row.unit for row in totals.values() if row.metric == metric)
    return titled(metric, next(units, ""))


def titled(metric: str, unit: str) -> str:
    """Return the label of values of a unit; times of an emulated guest are called virtual."""
    return f"virtual {label(metric)}" if unit.startswith("virtual_") else label(metric)


def _value(row: Row | None, baseline: str) -> str:
    if row is None:
        return NOTHING
    text = human(row.median, row.unit)
    # Counts and bytes are exact; times also differ by chance.
    is_same = (
        row.metric in _NOISY
        and row.profile != baseline
        and row.verdict is Verdict.NOT_SHOWN
        and row.n > 1
    )
    return f"{SAME} {text}" if is_same else text


def change(row: Row | None, baseline: str) -> str:
    """Format a change: −21 %, +4.1 %, 8.8×; `≈ −6.0 %` if it is not significant, and in brackets if
    there is only one repetition, which cannot show a difference."""
    if row is None or (row.profile != baseline and row.ratio is None):
        return NOTHING
    if row.profile == baseline or row.ratio is None:
        return "baseline"
    return changed(row.ratio, row.verdict, row.n)


def changed(ratio: float, verdict: Verdict | None, n: int) -> str:
    """Format a ratio as a change, with the mark of a change that is not significant."""
    text = signed_change(ratio)
    if verdict is not Verdict.NOT_SHOWN:
        return text
    if n < 2:
        return f"({text})"
    # Bytes that do not differ at all need no number.
    return SAME if abs(ratio - 1) < _TOO_SMALL else f"{SAME} {text}"


def signed_change(ratio: float) -> str:
    """Format a ratio as a change: −21 %, +4.1 %, 8.8×."""
    return human_ratio(ratio) if ratio >= 2 else f"{'−' if ratio < 1 else '+'}{percent(ratio)}"


def _interval(row: Row | None, baseline: str) -> tuple[str, str, str]:
    """Return the ratio, its interval and the verdict, as in `--json`."""
    if row is None or row.profile == baseline or row.ratio is None:
        return NOTHING, NOTHING, NOTHING
    word = (row.verdict or Verdict.UNDEFINED).value
    if row.ratio_low is None or row.ratio_high is None:
        return human_ratio(row.ratio), NOTHING, word
    if (row.ratio_high - row.ratio_low) / 2 > _HOPELESS_WIDTH * row.ratio:
        return HOPELESS, HOPELESS, word
    return human_ratio(row.ratio), ratio_interval(row.ratio_low, row.ratio_high), word


def legend(found: Ranking, rows: Sequence[Row], *, is_wide: bool, why_one: str = "") -> list[str]:
    """Explain how to read the table, limited to what it contains. `why_one` says why a single
    repetition is a result."""
    counts = sorted({row.n for row in found.rows})
    if not counts:
        return []
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = ["1 repetition." if n == "1" else f"{n} repetitions, interleaved; medians."]
    if found.baseline not in found.profiles:
        return [*lines, f"No ratios: the baseline {found.baseline} has no finished cell."]
    if len(found.rows) == 1:
        return lines
    if counts[-1] == 1:
        if why_one:
            return [why_one, "In brackets: not significant."]
        return [
            *lines,
            "In brackets: not significant; a single repetition has no interval.",
        ]
    changes = [change(row, found.baseline) for row in found.rows]
    shown = (
        [SAME]
        if any(text.startswith(SAME) for text in changes)
        or any(_value(row, found.baseline).startswith(SAME) for row in rows if row.phase == TOTAL)
        else []
    )
    least = f"{100 * stats.MINIMUM_SIZE:.0f} %"
    rule = (
        f"A difference is reported only if it is at least {least} and the 95 % interval of its"
        " ratio excludes 1."
    )
    lines.append(
        f"{SAME}: no significant difference from {found.baseline}. {rule}" if shown else rule
    )
    if is_wide and any(_interval(row, found.baseline)[0] == HOPELESS for row in found.rows):
        lines.append(f"{HOPELESS}: an interval too wide to print.")
    return lines
