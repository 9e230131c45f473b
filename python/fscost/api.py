"""What `import fscost` offers to notebooks and scripts."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from fscost import analyze, files, stats
from fscost.errors import InputError
from fscost.report.figures import figures
from fscost.report.html import html_text
from fscost.results import RunResults, kept_recording
from fscost.results import load as _load
from fscost.view.page import Page, page

__all__ = ["Run", "load"]


@dataclass(frozen=True)
class Run:
    """A finished run.

    `results.samples` is the Arrow table of all samples: cell, profile, repetition, seed, order,
    phase, measured, disk, metric, unit, value.
    """

    results: RunResults

    @property
    def samples(self) -> pa.Table:
        """All samples, as the Parquet file has them."""
        return self.results.samples

    @property
    def rows(self) -> pa.Table:
        """Median, 95 % interval, ratio to the baseline and verdict of each profile, phase and
        metric."""
        return stats.to_table(stats.summarise(self.samples, self.results.manifest.baseline))

    def explain(self, profile: str) -> analyze.Explanation:
        """What each written byte of the profile's recording was; `.table` is Arrow."""
        for cell in self.results.manifest.done:
            path = kept_recording(self.results.folder, cell)
            if cell.profile == profile and path is not None:
                return analyze.explain(path)
        raise InputError(
            f"{self.results.folder} has no recording of {profile!r}",
            "`fscost compare --keep one` keeps one of each profile",
        )

    @property
    def figures(self) -> dict[str, Any]:
        """Altair charts by name; those of one profile end in its anchor (docs/report.md)."""
        return {figure.identity: figure.chart for figure in figures(self._page)}

    def report(self, path: Path | str) -> None:
        """Write the page that `fscost report` writes."""
        with files.replacing(Path(path)) as file:
            file.write(html_text(self._page).encode("utf-8", "backslashreplace"))

    @cached_property
    def _page(self) -> Page:
        return page(self.results)


def load(folder: Path | str, *, trust: bool = False) -> Run:
    """The run that `fscost compare` left in a folder; `trust` one that others can write to."""
    return Run(_load(Path(folder), trust=trust))
