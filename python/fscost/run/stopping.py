"""Repetitions enough? And how long until then?"""

from collections.abc import Sequence

from fscost import stats
from fscost.results import CellRecord, RunResults
from fscost.run.spec import StoppingRule

_USELESS = 1.0
"""Half of an interval, as part of its median: a wider one is not told to the percent."""


def why_stop(
    rule: StoppingRule,
    results: RunResults,
    running: Sequence[str],
    repetitions: int,
    lanes: int = 1,
) -> str | None:
    """After `repetitions` whole repetitions: the reason to stop, or None to go on. `running`: the
    profiles still in, `lanes` of them at a time."""
    if repetitions == 0:
        return None
    if not running:
        return "no profile is left that can run"
    if repetitions >= rule.max_repetitions:
        return f"{rule.max_repetitions} repetition{'s' * (rule.max_repetitions > 1)}, the most asked for; {_precision(rule, results, running)}"
    if repetitions < rule.whole_repetitions:
        return None
    # Never a part of a repetition: what has no partner in the others is lost to the ratios.
    if (
        results.manifest.elapsed_s + repetition_s(results.manifest.cells, running) / lanes
        > rule.max_minutes * 60
    ):
        few = (
            f", fewer than the {rule.min_repetitions} asked for"
            if repetitions < rule.min_repetitions
            else ""
        )
        done = (
            f"after {repetitions} repetition{'s' * (repetitions > 1)}{few}, another would pass "
            f"{rule.max_minutes:g} minutes (--resume RUN --max-minutes N goes on)"
        )
        return f"{done}; {_precision(rule, results, running)}"
    if repetitions >= rule.min_repetitions and narrow(rule, results, running):
        return _precision(rule, results, running)
    return None


def narrow(rule: StoppingRule, results: RunResults, running: Sequence[str]) -> bool:
    """Whether the interval of the rule's metric is within its precision for each profile's
    total."""
    widest = _widest(rule, results, running)
    return widest is not None and widest[0] <= rule.precision


def repetition_s(cells: Sequence[CellRecord], running: Sequence[str]) -> float:
    """What one repetition takes, from the cells so far."""
    known = {
        profile: [cell.duration_s for cell in cells if cell.profile == profile]
        for profile in running
    }
    means = [sum(found) / len(found) for found in known.values() if found]
    return sum(means) / len(means) * len(running) if means else 0.0


def remaining_s(
    rule: StoppingRule,
    results: RunResults,
    running: Sequence[str],
    repetition: int,
    cells_left: int,
    lanes: int = 1,
) -> tuple[float, float]:
    """Until the earliest end and until the latest, in the middle of `repetition` with `cells_left`
    of it to go."""
    whole = repetition_s(results.manifest.cells, running) / lanes
    here = whole * cells_left / len(running) if running else 0.0
    earliest = here + max(0, rule.min_repetitions - repetition - 1) * whole
    latest = here + max(0, rule.max_repetitions - repetition - 1) * whole
    cap = max(here, rule.max_minutes * 60 - results.manifest.elapsed_s)
    return min(earliest, cap), min(latest, cap)


def _widest(
    rule: StoppingRule, results: RunResults, running: Sequence[str]
) -> tuple[float, str] | None:
    """The widest interval and its profile; None when some profile has no interval yet."""
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
    if width <= rule.precision:
        return f"{rule.metric} is known to {known}, within the ± {rule.precision * 100:.1f} % asked for"
    asked = f"± {rule.precision * 100:.1f} %"
    return f"{rule.metric} of {profile} is known to {known}, not to the {asked} asked for"
