"""Functions and objects that `import fscost` offers to notebooks and scripts."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from fscost import analyze, files, stats
from fscost import wear as _wear
from fscost.errors import InputError
from fscost.request.hooks import around
from fscost.request.model import AUTO, Place, Request
from fscost.request.prepare import prepared
from fscost.request.request import absolute, with_range
from fscost.results import RunResults, how_to_fetch
from fscost.results import load as _load
from fscost.run import execute
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.kept import first_recorded
from fscost.view.page import Page, page
from fscost.view.run import view
from fscost.view.sweep import rows as effect_rows
from fscost.view.sweep import sweeps

__all__ = ["Request", "Run", "compare", "explain", "load", "report", "wear"]

_NO_OPTIONS = Request()


@dataclass(frozen=True)
class Run:
    """A finished run.

    `results.samples` is the Arrow table of all samples: cell, profile, repetition, seed, order,
    phase, measured, disk, metric, unit, value.
    """

    results: RunResults

    @property
    def samples(self) -> pa.Table:
        """Table of all samples, as in the Parquet file."""
        return self.results.samples

    @property
    def rows(self) -> pa.Table:
        """Median, 95 % interval, ratio to the baseline and verdict of each profile, phase and
        metric."""
        return stats.to_table(stats.summarise(self.samples, self.results.manifest.baseline))

    def _repr_html_(self) -> str:
        """Answer and first table, which notebooks show for a run."""
        shown = view(self.results)
        lines = [("th", shown.summary.header), *(("td", row) for row in shown.summary.rows)]
        table = "".join(
            f"<tr>{''.join(f'<{tag}>{escape(plain(cell))}</{tag}>' for cell in row)}</tr>"
            for tag, row in lines
        )
        return f"<p>{escape(plain(shown.headline))}</p><table>{table}</table>"

    def effects(self, metric: str = WRITTEN) -> pa.Table:
        """Effects of the options of a sweep on the totals of a metric, the largest first: sweep,
        metric, unit, factors, levels, against, n, effect, low, high, verdict."""
        found = (row for each in sweeps(self.results, metric) for row in effect_rows(each))
        return pa.Table.from_pylist([asdict(row) for row in found])

    def recording(self, profile: str) -> Path:
        """Return the first recording that the run kept of a profile. InputError if there is
        none."""
        if (recorded := first_recorded(self.results, profile)) is not None:
            return recorded[1]
        raise InputError(
            f"{self.results.folder} has no recording of {profile!r}",
            how_to_fetch(self.results.manifest.cells)
            or "run `fscost compare` again: --keep one keeps a recording of each profile",
        )

    def explain(self, profile: str) -> analyze.Explanation:
        """Attribute each written byte of the profile's recording. `.table` is an Arrow table."""
        return explain(self.recording(profile))

    def wear(self, profile: str, device: str, **options: Any) -> dict[str, _wear.Wear]:
        """Compute the wear that the profile's recording causes on a device: see `fscost.wear`."""
        return wear(self.recording(profile), device, **options)

    @property
    def figures(self) -> dict[str, Any]:
        """Altair charts by name. Names of charts about a single profile end in a hyphen and the
        profile's anchor in the page. Needs the extra `report`, as `report` does."""
        from fscost.report.figures import figures

        return {figure.identity: figure.chart for figure in figures(self._page)}

    def report(self, path: Path | str, *, ssd: str | None = None, array: str | None = None) -> None:
        """Write the page that `fscost report` writes, with the same options."""
        from fscost.report.html import html_text

        device, shape = _wear.of_options(ssd, array)
        shown = self._page if device is None else page(self.results, (), device, shape)
        with files.replacing(Path(path)) as file:
            file.write(html_text(shown).encode("utf-8", "backslashreplace"))

    @cached_property
    def _page(self) -> Page:
        return page(self.results)


def compare(
    *profiles: str,
    command: str | Sequence[str] = (),
    workload: str | None = None,
    repetitions: int | None = None,
    out: Path | str | None = None,
    lab: str = AUTO,
    options: Request = _NO_OPTIONS,
    say: Callable[[str], None] = lambda _: None,
) -> Run:
    """Measure a command or a built-in workload on each profile, as `fscost compare` does.

    `profiles` use the syntax of --on. `command` is a string for the shell or a list of words.
    `repetitions` is exact. `out` is the run's folder; by default, a new folder in `fscost-runs`.
    `lab` is "native", "vm" or "auto". `options` holds every other option of `fscost compare` that
    decides what is measured, under the option's name: `Request(scale=0.2, ssd="sd-card")`. `say` is
    called with each note on preparation and cleanup.

    Failed cells are listed in `results.manifest.failed`. Raises InputError for a request that
    cannot be satisfied, HostError if the lab cannot run, and KeyboardInterrupt if the run is
    interrupted.
    """
    words = (command,) if isinstance(command, str) else tuple(command)
    given = {
        "on": profiles,
        "command": words,
        "workload": workload,
        "min_repetitions": repetitions,
        "max_repetitions": repetitions,
    }
    chosen: dict[str, Any] = {
        name: value for name, value in given.items() if value not in (None, ())
    }
    asked = replace(options, **chosen)
    changed = [name for name, value in asdict(asked).items() if value != getattr(Request, name)]
    asked = absolute(with_range(asked, changed))
    place = Place(lab, None if out is None else Path(out))
    found = prepared(asked, place, say, shlex.split(asked.command_line()))
    with around(asked.setup, asked.cleanup, say):
        outcome = execute(found.spec, found.executor, None, found.lock)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return Run(outcome.results)


def explain(recording: Path | str) -> analyze.Explanation:
    """Attribute each written byte of a recording (docs/explaining.md). `.table` has a row for each
    extent, `.sums("cause")` sums bytes by a column, and `.within(["phase"])` selects phases."""
    return analyze.explain(Path(recording))


def wear(
    recording: Path | str,
    device: str,
    *,
    by: _wear.By | str | None = None,
    fill: float = 1.0,
    place: _wear.Place | str = _wear.Place.DISK,
    repeat: _wear.Repeat | str = _wear.Repeat.VARIED,
    seed: int = 1,
) -> dict[str, _wear.Wear]:
    """Compute the wear that a recording causes, by disk (docs/wear.md).

    `device` is a name from `fscost devices` or a TOML file. `by` charges NAND bytes to "cause",
    "structure", "path" or "step". `fill` is the share of the device that holds data. `place` is
    "disk" or "footprint", and `repeat` "varied" or "exact". In the result, sizes are in bytes, for
    one run of the workload, and `erases` has a count for each block. Raises InputError for an
    unknown device or a damaged recording.
    """
    found = _wear.find(device)
    charged = None if by is None else _wear.By(by)
    return {
        source.disk: _wear.measure(
            source,
            found,
            by=charged,
            fill=fill,
            place=_wear.Place(place),
            repeat=_wear.Repeat(repeat),
            seed=seed,
        )
        for source in _wear.sources(Path(recording), is_explained=charged is not None)
    }


def report(
    folder: Path | str,
    path: Path | str,
    *,
    ssd: str | None = None,
    array: str | None = None,
    trust: bool = False,
) -> None:
    """Write the page that `fscost report` writes for a run's folder."""
    load(folder, trust=trust).report(path, ssd=ssd, array=array)


def load(folder: Path | str, *, trust: bool = False) -> Run:
    """Load the run that `fscost compare` left in a folder. `trust` accepts a folder that other
    users can write to."""
    return Run(_load(Path(folder), trust=trust))
