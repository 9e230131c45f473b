"""Runs of a folder, each with its answer, and with the trend since earlier runs of the same."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from fscost import stats
from fscost.errors import FscostError, InputError
from fscost.results import MANIFEST, RunResults, load
from fscost.stats import Ratio
from fscost.view import alike
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.run import answer
from fscost.view.summary import changed

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 12
_MOST_SERIES = 64
"""Series of one name, lab and profiles that a run may continue: the newest."""
_Written = Mapping[str, Mapping[int, float]]
"""Bytes written by each profile, by repetition."""


@dataclass(frozen=True)
class Trend:
    """What changed since an earlier run of the same name, lab, work and profiles. `before`: its
    folder. `ratios`: the bytes written by each profile relative to it. `medians`: the bytes that
    the baseline wrote in each run so far, the oldest first."""

    before: str
    ratios: Mapping[str, Ratio]
    medians: Sequence[float]

    def __str__(self) -> str:
        changes = ", ".join(
            f"{plain(name)} {changed(each.ratio, each.verdict, each.n)}"
            for name, each in self.ratios.items()
            if each.ratio is not None
        )
        return f"Since {plain(self.before)}: {changes} {_bars(self.medians[-_MOST_BARS:])}"


@dataclass(frozen=True)
class Listed:
    """A run of a folder. `work`: what it did, without the seed. For an unreadable run, the
    answer is the reason, and the other fields are empty."""

    folder: Path
    answer: str
    title: str = ""
    started_utc: str = ""
    lab: str = ""
    profiles: tuple[str, ...] = ()
    is_readable: bool = True
    work: alike.Facts = field(default_factory=dict, repr=False)
    trend: Trend | None = None

    @property
    def name(self) -> str:
        """Name of the folder, in printable form."""
        return plain(os.fsencode(self.folder.name).decode("utf-8", "replace"))

    @property
    def key(self) -> str:
        """Name of the folder in addresses. A folder's name is a byte string, which an address must
        encode."""
        return key(os.fsencode(self.folder.name))


_Series = list[tuple[Listed, _Written]]
"""Runs that did the same, the oldest first."""


def key(name: bytes) -> str:
    """Encode a name as part of an address, in one canonical form."""
    return quote(name, safe="")


def listed(folder: Path, *, trust: bool) -> list[Listed]:
    """List the runs directly below a folder, by name, without links. InputError if it is not a
    folder."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder",
            "name the folder that holds runs, or start one: fscost compare",
        )
    found = sorted(
        each for each in folder.iterdir() if not each.is_symlink() and (each / MANIFEST).is_file()
    )
    return _with_trends([_listed(each, trust=trust) for each in found])


def _with_trends(found: Sequence[tuple[Listed, _Written]]) -> list[Listed]:
    """Add what changed since the run before, of the same name, lab, work and profiles."""
    earlier: dict[tuple[str, ...], list[_Series]] = {}
    trends: dict[Path, Trend] = {}
    for run, written in sorted(found, key=lambda each: each[0].started_utc):
        if not written:
            continue
        alikes = earlier.setdefault((run.title, run.lab, *run.profiles), [])
        newest = alikes[: -_MOST_SERIES - 1 : -1]
        same = (each for each in newest if not alike.differences(each[-1][0].work, run.work))
        series = next(same, None)
        if series is None:
            alikes.append([(run, written)])
            continue
        before, its = series[-1]
        series.append((run, written))
        ratios = {
            name: stats.ratio(mine, its[name]) for name, mine in written.items() if name in its
        }
        trends[run.folder] = Trend(before.name, ratios, [_median(each) for _, each in series])
    return [replace(run, trend=trends.get(run.folder)) for run, _ in found]


def _median(written: _Written) -> float:
    first = next(iter(written.values()))
    return stats.interval(list(first.values())).median


def _bars(values: Sequence[float]) -> str:
    """Draw values as bars, from 0 to the largest."""
    most = max(values)
    return "".join(_BARS[round((len(_BARS) - 1) * each / most)] if most else "▁" for each in values)


def _listed(folder: Path, *, trust: bool) -> tuple[Listed, _Written]:
    """Return the run's answer, or why it cannot be read, so that one bad run does not hide
    others; and the bytes that it wrote, the baseline's first."""
    try:
        results = load(folder, trust=trust)
    except FscostError as error:
        return Listed(folder, plain(f"unreadable: {error.what}"), is_readable=False), {}
    manifest = results.manifest
    work = alike.without_seed(manifest, alike.work(manifest, manifest.profile_names))
    found = stats.by_repetition(results.samples, WRITTEN)
    names = dict.fromkeys([manifest.baseline, *manifest.profile_names])
    written = {name: found[name] for name in names if name in found}
    listed = Listed(
        folder,
        f"{_state(results)}{answer(results) or 'no cell finished'}",
        plain(manifest.name),
        plain(manifest.started_utc),
        plain(manifest.lab),
        tuple(map(plain, manifest.profile_names)),
        work=work,
    )
    return listed, written


def _state(results: RunResults) -> str:
    state = results.manifest.state
    return "" if state == "finished" else f"({state}) "
