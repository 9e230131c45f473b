"""Decision whether a run has enough repetitions, and an estimate of its remaining time."""

from collections.abc import Sequence

from fscost import stats
from fscost.results import CellRecord, Manifest, RunResults
from fscost.run.spec import StoppingRule

_ENOUGH_EQUAL = 2
_DEFAULT_LEAST = StoppingRule.min_repetitions
_EXACT_UNITS = ("bytes", "count")
_USELESS = 1.0
"""Half-width of an interval, relative to its median, above which messages give no exact
percentage."""


def why_stop(
    rule: StoppingRule,
    results: RunResults,
    running: Sequence[str],
    repetitions: int,
    lanes: int = 1,
) -> str | None:
    """Return the reason to stop after `repetitions` whole repetitions, or None to continue.
    `running`: the profiles still in the run, `lanes` of them at a time."""
    if repetitions == 0:
        return None
    if not running:
        return "no profile is left that can run"
    if repetitions >= rule.max_repetitions:
        return (
            f"maximum of {rule.max_repetitions} repetition{'s' * (rule.max_repetitions > 1)}"
            f" reached; {_precision(rule, results, running)}"
        )
    if repetitions < rule.whole_repetitions:
        return None
    # Stop only between repetitions: values without a partner in the same repetition cannot be
    # used in ratios.
    if (
        results.manifest.elapsed_s + repetition_s(results.manifest.cells, running) / lanes
        > rule.max_minutes * 60
    ):
        few = f" (minimum: {rule.min_repetitions})" if repetitions < rule.min_repetitions else ""
        done = (
            f"{repetitions} repetition{'s' * (repetitions > 1)} done{few}; another would exceed"
            f" {rule.max_minutes:g} minutes (--resume RUN --max-minutes N continues)"
        )
        return f"{done}; {_precision(rule, results, running)}"
    if _may_stop_early(rule, repetitions) and are_equal(results, running):
        return f"n = {repetitions}, equal to the byte"
    if repetitions >= rule.min_repetitions and narrow(rule, results, running):
        return _precision(rule, results, running)
    return None


def _may_stop_early(rule: StoppingRule, repetitions: int) -> bool:
    """True after the second repetition if the bounds are the default, or as low as that."""
    is_open = rule.min_repetitions < rule.max_repetitions
    return is_open and repetitions >= _ENOUGH_EQUAL and rule.min_repetitions <= _DEFAULT_LEAST


def are_equal(results: RunResults, running: Sequence[str]) -> bool:
    """True if all repetitions of each profile, in emulated guests, have the same bytes and
    requests. Only such guests execute the same instructions in each repetition (docs/vm.md)."""
    if not results.is_emulated:
        return False
    samples = results.samples
    units = samples["unit"].to_pylist()
    columns = (samples[name].to_pylist() for name in ("profile", "phase", "disk", "metric"))
    keys = zip(*columns, strict=True)
    values: dict[tuple[str, ...], list[float]] = {}
    for key, unit, value in zip(keys, units, samples["value"].to_pylist(), strict=True):
        if unit in _EXACT_UNITS and key[0] in running:
            values.setdefault(key, []).append(value)
    most = max((len(found) for found in values.values()), default=0)
    return most >= _ENOUGH_EQUAL and all(
        len(found) == most and len(set(found)) == 1 for found in values.values()
    )


def narrow(rule: StoppingRule, results: RunResults, running: Sequence[str]) -> bool:
    """True if the interval of the rule's metric is within the rule's precision for each
    profile's total."""
    widest = _widest(rule, results, running)
    return widest is not None and widest[0] <= rule.precision


def repetition_s(cells: Sequence[CellRecord], running: Sequence[str]) -> float:
    """Estimate the time of one repetition from the cells so far."""
    known: dict[str, list[float]] = {profile: [] for profile in running}
    for cell in cells:
        if cell.profile in known:
            known[cell.profile].append(cell.duration_s)
    means = [sum(found) / len(found) for found in known.values() if found]
    return sum(means) / len(means) * len(running) if means else 0.0


def remaining_s(
    rule: StoppingRule,
    manifest: Manifest,
    running: Sequence[str],
    repetition: int,
    cells_left: int,
    lanes: int = 1,
) -> tuple[float, float]:
    """Estimate the time to the earliest and to the latest end, from the middle of `repetition` with
    `cells_left` cells to go."""
    whole = repetition_s(manifest.cells, running) / lanes
    here = whole * cells_left / len(running) if running else 0.0
    earliest = here + max(0, rule.min_repetitions - repetition - 1) * whole
    latest = here + max(0, rule.max_repetitions - repetition - 1) * whole
    cap = max(here, rule.max_minutes * 60 - manifest.elapsed_s)
    return min(earliest, cap), min(latest, cap)


def _widest(
    rule: StoppingRule, results: RunResults, running: Sequence[str]
) -> tuple[float, str] | None:
    """Find the widest interval and its profile; None while some profile has no interval."""
    found = stats.half_widths(results.samples, rule.metric)
    widths = [
        (found[profile].relative_half_width if profile in found else None, profile)
        for profile in running
    ]
    known = [(width, profile) for width, profile in widths if width is not None]
    return max(known) if known and len(known) == len(widths) else None


def _precision(rule: StoppingRule, results: RunResults, running: Sequence[str]) -> str:
    widest = _widest(rule, results, running)
    if widest is None:
        return f"{rule.metric} has no interval"
    width, profile = widest
    known = f"± {width * 100:.1f} %" if width < _USELESS else f"± more than {_USELESS * 100:.0f} %"
    target = f"the target of ± {rule.precision * 100:.1f} %"
    if width <= rule.precision:
        return f"{rule.metric} is known to {known}, within {target}"
    return f"{rule.metric} of {profile} is known to {known}, not to {target}"
