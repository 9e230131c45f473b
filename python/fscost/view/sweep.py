"""Sweeps: the options that matter for a metric, and the profiles that no other one improves on."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost import stats
from fscost.errors import InputError, did_you_mean
from fscost.results import METRICS, RunResults
from fscost.results.worn import RUNS, YEARS
from fscost.stats import Effect, Effects, Verdict
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import NOTHING, Grid
from fscost.view.power_cut import verdicts
from fscost.view.summary import SAME, label, signed_change
from fscost.view.units import human

SAFETY = "safety"
"""Second metric of a Pareto set: the verdict after power cuts (`--crash`)."""
_MOST_FACTORS = 20
_MOST_NAMED = 3
_MORE_IS_BETTER = (RUNS, YEARS)


@dataclass(frozen=True)
class Sweep:
    """Effects of the factors of one spelling on the totals of a metric."""

    spelling: str
    metric: str
    unit: str
    found: Effects


@dataclass(frozen=True)
class EffectRow:
    """Effect of a level of a sweep's factor compared with the first one (`against`), or of two
    levels together: a ratio, or a difference in the unit of the metric. `n`: number of samples."""

    sweep: str
    metric: str
    unit: str
    factors: list[str]
    levels: list[str]
    against: list[str]
    n: int
    effect: float
    low: float | None
    high: float | None
    verdict: Verdict


def sweeps(results: RunResults, metric: str) -> list[Sweep]:
    """Return the effects of each sweep with at least two factors. The manifest is untrusted."""
    values = stats.by_repetition(results.samples, metric)
    observations: dict[tuple[str, ...], list[stats.Observation]] = {}
    for profile in results.manifest.profiles:
        levels = _levels(profile)
        key = (str(profile.get("sweep")), *levels)
        observations.setdefault(key, []).extend(
            stats.Observation(levels, repetition, value)
            for repetition, value in values.get(str(profile["name"]), {}).items()
        )
    unit = METRICS[metric].unit if metric in METRICS else ""
    found = []
    for (spelling, *factors), samples in observations.items():
        if 2 <= len(factors) <= _MOST_FACTORS and samples:
            effects = stats.factorial(samples)
            if effects is not None and _count(effects) > 1:
                found.append(Sweep(spelling, metric, unit, effects))
    return found


def grid(sweep: Sweep, *, is_wide: bool) -> Grid:
    """Show the effects, the largest first, below a sentence that names those that matter. The table
    that is not wide leaves out pairs that were not shown to act together."""
    chosen = [
        effect
        for effect in sweep.found.effects
        if is_wide or len(effect.levels) == 1 or effect.verdict is not Verdict.NOT_SHOWN
    ]
    lines = [
        [
            _name(effect),
            _change(sweep, effect),
            _interval(sweep, effect),
            _compared(sweep, effect),
        ]
        for effect in chosen
    ]
    header = ["option", "effect", "95 % interval", "compared with"]
    return Grid(words(sweep), header, lines, left=(0, 3), changes=(1,))


def words(sweep: Sweep) -> str:
    """Name what matters, what does not, and what the design cannot tell."""
    found = sweep.found
    shown = [each for each in found.effects if each.verdict is not Verdict.NOT_SHOWN]
    rest = [each for each in found.effects if each.verdict is Verdict.NOT_SHOWN]
    name = "bytes written" if sweep.metric == WRITTEN else label(sweep.metric)
    title = f"What matters for {name}"
    if not found.degrees:
        return f"{title}: nothing is known, because one repetition has no interval (-r 2 has)"
    within = _within(sweep, rest)
    if shown:
        said = (
            f"{title}: {', '.join(f'{_name(each)} {_with_error(sweep, each)}' for each in shown)}"
        )
        said += f"; the rest {within}" if within else ""
    else:
        said = f"{title}: no option is known to; all effects are {within}"
    return ". ".join([said, *_unknown(found)])


def rows(sweep: Sweep) -> Iterator[EffectRow]:
    """Yield the effects for programs."""
    found = sweep.found
    unit = "ratio" if found.is_ratio else sweep.unit
    for each in found.effects:
        yield EffectRow(
            sweep.spelling,
            sweep.metric,
            unit,
            list(each.factors),
            list(each.levels),
            list(each.against),
            found.n,
            each.size,
            each.low,
            each.high,
            each.verdict,
        )


def pareto(results: RunResults, first: str, second: str) -> Grid:
    """Show the profiles that no other one improves on in both metrics."""
    values = {metric: _values(results, metric) for metric in (first, second)}
    best = stats.pareto(*(_less_is_better(found, name) for name, found in values.items()))
    both = [name for name in values[first] if name in values[second]]
    said = verdicts(results)[0]
    lines = [
        [name, *(_median(values[metric][name], metric, said.get(name, "")) for metric in values)]
        for name in best
    ]
    title = (
        f"Best in {label(first)} and {label(second)}: {len(best)} of {len(both)} profiles. For each"
        " of the others, one of these is better in one of the two and not worse in the other"
    )
    return Grid(title, ["profile", label(first), label(second)], lines)


def _levels(profile: Mapping[str, Any]) -> dict[str, str]:
    levels = profile.get("levels")
    if not isinstance(levels, list):
        return {}
    pairs = [each for each in levels if isinstance(each, list) and len(each) == 2]
    return {str(factor): str(level) for factor, level in pairs}


def _count(found: Effects) -> int:
    """Number of factors."""
    return len({factor for effect in found.effects for factor in effect.factors}) + len(
        found.unknown
    )


def _name(effect: Effect) -> str:
    return " with ".join(effect.levels)


def _compared(sweep: Sweep, effect: Effect) -> str:
    """Return the level that the effect is against; for a pair, the effect of the one at each level
    of the other."""
    if not effect.at:
        return " with ".join(effect.against)
    at = [f"{_size(sweep, size)} {_with(level)}" for level, size in effect.at]
    return f"{effect.levels[0]}: {', '.join(at)}"


def _with(level: str) -> str:
    return level if level.startswith("without ") else f"with {level}"


def _size(sweep: Sweep, size: float) -> str:
    if sweep.found.is_ratio:
        return signed_change(size)
    return f"{'−' if size < 0 else '+'}{human(abs(size), sweep.unit)}"


def _change(sweep: Sweep, effect: Effect) -> str:
    text = _size(sweep, effect.size)
    if effect.verdict is not Verdict.NOT_SHOWN:
        return text
    return f"({text})" if effect.low is None else f"{SAME} {text}"


def _interval(sweep: Sweep, effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return NOTHING
    return f"{_size(sweep, effect.low)} to {_size(sweep, effect.high)}"


def _with_error(sweep: Sweep, effect: Effect) -> str:
    """Return the size and half the width of its interval: −31 % ± 2."""
    half = (_known(effect.high) - _known(effect.low)) / 2
    text = _size(sweep, effect.size)
    if not sweep.found.is_ratio:
        return f"{text} ± {human(half, sweep.unit)}"
    return f"{text} ± {_digits(half if text.endswith('×') else half * 100)}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 1 or value < 0.005 else f"{value:.1g}"


def _within(sweep: Sweep, rest: Sequence[Effect]) -> str:
    """Return the bound of all effects that were not shown; empty if there are none."""
    bounds = [_known(bound) for effect in rest for bound in (effect.low, effect.high)]
    if not bounds:
        return ""
    if not sweep.found.is_ratio:
        return f"within ± {human(max(map(abs, bounds)), sweep.unit)}"
    most = max(abs(bound - 1) for bound in bounds) * 100
    return f"within ± {math.ceil(most):,} %" if most >= 1 else f"within ± {_digits(most)} %"


def _known(bound: float | None) -> float:
    assert bound is not None, "a fit with degrees of freedom has intervals"
    return bound


def _unknown(found: Effects) -> Iterator[str]:
    if found.unknown:
        yield f"Unknown, because combinations are missing: {', '.join(found.unknown)}"
    if not found.inseparable:
        return
    if all(len(effect.factors) == 1 for effect in found.effects):
        yield "The design does not show which options act together"
        return
    named = ", ".join(" with ".join(pair) for pair in found.inseparable[:_MOST_NAMED])
    more = len(found.inseparable) - _MOST_NAMED
    others = f" and {more} more" if more > 0 else ""
    yield f"The design does not show which of these act together: {named}{others}"


def _values(results: RunResults, metric: str) -> dict[str, dict[int, float]]:
    if metric == SAFETY:
        from fscost.crash.verdict import Verdict as CrashVerdict

        ranks = {verdict.value: rank for rank, verdict in enumerate(CrashVerdict)}
        found = verdicts(results)[0]
        if not found:
            raise InputError(
                "--pareto safety: this run has no verdicts after power cuts",
                "run the comparison with --crash",
            )
        # A verdict has no spread; two equal values have an interval without width.
        return {name: dict.fromkeys((0, 1), 1.0 + ranks[word]) for name, word in found.items()}
    values = stats.by_repetition(results.samples, metric)
    if values:
        return {name: values[name] for name in results.manifest.profile_names if name in values}
    known = dict.fromkeys(results.samples["metric"].to_pylist())
    raise InputError(
        f"--pareto {metric!r} is unknown to this run",
        did_you_mean(metric, [*known, SAFETY]) or f"one of: {', '.join([*known, SAFETY])}",
    )


def _less_is_better(
    values: Mapping[str, Mapping[int, float]], metric: str
) -> dict[str, dict[int, float]]:
    if metric not in _MORE_IS_BETTER:
        return {name: dict(of) for name, of in values.items()}
    return {
        name: {repetition: 1 / max(each, 1e-9) for repetition, each in of.items()}
        for name, of in values.items()
    }


def _median(values: Mapping[int, float], metric: str, verdict: str) -> str:
    if metric == SAFETY:
        return verdict
    unit = METRICS[metric].unit if metric in METRICS else ""
    return human(stats.interval(list(values.values())).median, unit)
