"""Contents of a page about a run, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fscost import wear
from fscost.errors import FscostError
from fscost.results import METRICS, RunResults
from fscost.view import tables
from fscost.view.answers import answers
from fscost.view.grid import plain
from fscost.view.kept import Kept, kept
from fscost.view.latencies import latencies
from fscost.view.modelled import Modelled, modelled
from fscost.view.run import View, view
from fscost.view.sweep import words
from fscost.view.tables import Table

if TYPE_CHECKING:
    from fscost.study import Report
    from fscost.view.study import StudyView


@dataclass(frozen=True)
class Page:
    """Contents of a page. `tables`: by name; `damage`: unreadable parts of the run's folder."""

    results: RunResults
    view: View
    answers: Sequence[str]
    tables: dict[str, Table]
    kept: Kept
    modelled: Modelled
    damage: Sequence[str]
    study: "StudyView | None" = None
    """Published values beside measured ones, if the run belongs to a study."""


def page(
    results: RunResults,
    damage: Sequence[str] = (),
    device: wear.Device | None = None,
    array: wear.Shape | None = None,
) -> Page:
    """Build the page of a run, complete or not. Its recordings are explained, and replayed on
    `device` (default: that of the run's --ssd). With `array`, `device` is a member of it."""
    shown = view(results)
    ranked = tables.ranked(shown.rows)
    rows = [row for name in ranked for row in shown.rows if row.profile == name and not row.disk]
    found = (tables.measures, tables.causes, tables.structures, tables.phases)
    models = modelled(results, device, array)
    made = [tables.summary(rows, shown.power_cut), *(make(rows) for make in found)]
    made.append(tables.effects(shown.sweeps))
    sentences = answers(shown.headline, shown.why, rows, results.manifest.baseline)
    sentences += [f"{words(sweep)}." for sweep in shown.sweeps]
    report, unjudged = _judged(results)
    shown_study = None
    if report is not None:
        from fscost.view.study import claims, study_answers, study_view

        made.append(claims({"": report}))
        sentences = [*study_answers(report), *sentences]
        shown_study = study_view(report)
    return Page(
        results,
        shown,
        sentences,
        {table.name: table for table in (*made, models.wear, models.loads, latencies(results))},
        kept(results),
        models,
        [plain(line) for line in (*damage, *unjudged)],
        shown_study,
    )


def _judged(results: RunResults) -> "tuple[Report | None, Sequence[str]]":
    """Judge the claims of a study's run, or return why there are no verdicts if this version lacks
    the study."""
    name = results.manifest.request.get("study")
    if not name:
        return None, ()
    # Few runs belong to a study, and importing studies takes 0.1 s.
    from fscost import study

    try:
        return study.report(study.load(str(name)), results), ()
    except FscostError as error:
        return None, (f"the claims of the study are not judged: {error.what}",)


def meaning(metric: str) -> str:
    """Return a metric's meaning in words."""
    return METRICS[metric].meaning if metric in METRICS else ""
