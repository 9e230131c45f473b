"""Comparison of kernels: each profile under each kernel, and its change from the first kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from fscost import stats
from fscost.results import METRICS, RunResults
from fscost.stats import Ratio, Verdict
from fscost.view.grid import NOTHING, Grid
from fscost.view.summary import SAME, changed, label
from fscost.view.units import human

_MOST_NAMED = 4


@dataclass(frozen=True)
class _Kernels:
    """Values of each profile under each kernel, and its changes under each later kernel."""

    kernels: Sequence[str]
    values: Mapping[str, Sequence[Mapping[int, float]]]
    changes: Mapping[str, Mapping[str, Ratio]]


def told(results: RunResults, metric: str) -> str:
    """Say what each later kernel changes; empty if the run has one kernel."""
    found = _compared(results, metric)
    if found is None:
        return ""
    first, *_ = found.kernels
    return "; ".join(
        f"{kernel} against {first}: {_words(changes)}" for kernel, changes in found.changes.items()
    )


def by_kernel(results: RunResults, metric: str) -> Grid | None:
    """Return a table with a line for each profile; None if the run has one kernel."""
    found = _compared(results, metric)
    if found is None:
        return None
    first, *later = found.kernels
    lines = [
        [
            base,
            *(_value(each, METRICS[metric].unit) for each in values),
            *(_change(found.changes[kernel][base]) for kernel in later),
        ]
        for base, values in found.values.items()
    ]
    header = ["profile", *found.kernels, *(f"{kernel} vs {first}" for kernel in later)]
    title = f"{label(metric).capitalize()}, by kernel"
    return Grid(title, header, lines, changes=range(1 + len(found.kernels), len(header)))


def _compared(results: RunResults, metric: str) -> _Kernels | None:
    names: dict[str, dict[str, str]] = {}
    kernels: dict[str, None] = {}
    for profile in results.manifest.profiles:
        kernel = PurePath(str(profile.get("kernel") or "")).name
        name = str(profile.get("name"))
        if kernel:
            kernels[kernel] = None
            names.setdefault(name.removesuffix(f" @{kernel}"), {})[kernel] = name
    if len(kernels) < 2:
        return None
    measured = stats.by_repetition(results.samples, metric)
    first, *later = kernels
    values: dict[str, list[Mapping[int, float]]] = {}
    changes = {kernel: dict[str, Ratio]() for kernel in later}
    for base, of_kernel in names.items():
        found = {kernel: measured.get(of_kernel.get(kernel, ""), {}) for kernel in kernels}
        if any(found.values()):
            values[base] = [*found.values()]
            for kernel in later:
                changes[kernel][base] = stats.ratio(found[kernel], found[first])
    return _Kernels([*kernels], values, changes)


def _value(values: Mapping[int, float], unit: str) -> str:
    return human(stats.interval(list(values.values())).median, unit) if values else NOTHING


def _change(ratio: Ratio) -> str:
    return NOTHING if ratio.ratio is None else changed(ratio.ratio, ratio.verdict, ratio.n)


def _words(ratios: Mapping[str, Ratio]) -> str:
    """Name the profiles that changed, the largest change first."""
    known = {name: ratio.ratio for name, ratio in ratios.items() if ratio.ratio is not None}
    apart = [
        name
        for name, ratio in known.items()
        if ratios[name].verdict in (Verdict.LOWER, Verdict.HIGHER)
        or (ratios[name].n == 1 and ratio != 1)
    ]
    apart.sort(key=lambda name: -abs(known[name] - 1))
    parts = [f"{name} {_change(ratios[name])}" for name in apart[:_MOST_NAMED]]
    if len(apart) > _MOST_NAMED:
        parts.append(f"{len(apart) - _MOST_NAMED} more differ")
    if not parts:
        return "no difference found" if known else "nothing to compare"
    same = _same(len(known) - len(apart), len(known))
    return ", ".join([*parts, *same])


def _same(count: int, of: int) -> Sequence[str]:
    if not count:
        return ()
    return (f"the other{'s' * (count > 1)} {SAME}",) if count < of else ()
