"""Answers of a run, one sentence each: the profile that wrote the least, the dominant cause, and
the consequences for a device's life and for time."""

from collections.abc import Mapping, Sequence

from fscost.results import METRICS, TOTAL, written
from fscost.stats import Row, Verdict
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.units import human, human_ratio

Totals = Mapping[tuple[str, str], Row]


def answers(headline: str, why: Sequence[str], rows: Sequence[Row], baseline: str) -> list[str]:
    """Return the answers, only those that the samples support."""
    totals = {(row.profile, row.metric): row for row in rows if row.phase == TOTAL}
    ranked = sorted(
        (row for (_, metric), row in totals.items() if metric == WRITTEN),
        key=lambda row: row.median,
    )
    if not ranked:
        return ["No cell has finished: there is nothing to compare."]
    told = [*_certainty(ranked), *_dominates(totals, ranked), *_life(totals, ranked, baseline)]
    told += _time(totals, ranked, baseline)
    return [headline, *why, *(plain(line) for line in told)]


def _certainty(ranked: Sequence[Row]) -> list[str]:
    """Report the widest interval of a ratio to the baseline."""
    known = [
        (row, row.ratio_low, row.ratio_high)
        for row in ranked
        if row.ratio_low is not None and row.ratio_high is not None
    ]
    if not known:
        return []
    row, low, high = max(known, key=lambda each: each[2] - each[1])
    interval = f"{human_ratio(low)} to {human_ratio(high)} (n = {row.ratio_n})"
    return [f"Certainty: the widest 95 % interval of a ratio is {interval}, for {row.profile}."]


def _dominates(totals: Totals, ranked: Sequence[Row]) -> list[str]:
    """Report the largest cause other than the program's own data, for the first and the last
    profile."""
    causes = {metric: name for name, metric in written.BY_CAUSE.items() if name != "data"}
    causes[written.MIXED] = "mixed"
    by_name = {name: metric for metric, name in causes.items()}
    lines = []
    for row in dict.fromkeys((ranked[0], ranked[-1])):
        found = {
            name: totals[row.profile, metric].median
            for metric, name in causes.items()
            if (row.profile, metric) in totals
        }
        data = totals.get((row.profile, written.BY_CAUSE.get("data", "")))
        if data is None or not found or not row.median:
            continue
        name = max(found, key=lambda each: found[each])
        meaning = METRICS[by_name[name]].meaning.removeprefix("written for this reason alone: ")
        words = f"“{name.replace('_', ' ')}” ({meaning})"
        lines.append(
            f"{row.profile}: {_percent(data.median, row.median)} is the program's data; the largest"
            f" other cause is {words}, {_percent(found[name], row.median)}."
        )
    return lines


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %"


def _life(totals: Totals, ranked: Sequence[Row], baseline: str) -> list[str]:
    years = [(row.profile, totals.get((row.profile, "lifetime_years"))) for row in ranked]
    told = [f"{human(row.median, row.unit)} under {name}" for name, row in years if row is not None]
    if told:
        return [f"Back to back, the --ssd device would last {', '.join(told)}."]
    first = ranked[0]
    if first.verdict is not Verdict.LOWER or not first.ratio:
        return []
    longer = human_ratio(1 / first.ratio)
    return [
        (
            f"If wear depends on bytes written alone, a device lasts {longer} as long under"
            f" {first.profile} as under {baseline}."
        )
    ]


def _time(totals: Totals, ranked: Sequence[Row], baseline: str) -> list[str]:
    times = [row for each in ranked if (row := totals.get((each.profile, "wall_s"))) is not None]
    if len(times) < 2 or max(row.n for row in times) < 2:
        return []
    called = [row for row in times if row.verdict in (Verdict.LOWER, Verdict.HIGHER)]
    if not called:
        return [f"Time: no significant difference from {baseline}."]
    told = [f"{row.profile} {human_ratio(row.ratio or 0.0)}" for row in called]
    are_others = len(called) < sum(row.profile != baseline for row in times)
    others = "; no significant difference for the others" if are_others else ""
    return [f"Time, as a multiple of {baseline}'s: {', '.join(told)}{others}."]
