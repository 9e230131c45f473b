"""Pages of `fscost serve` that do not show a single run: a list of runs, and a comparison of two.
They contain no script."""

from collections.abc import Sequence

from fscost.report.html.templates import template
from fscost.view.changes import Changes, grid, headline, reasons
from fscost.view.runs import Listed


def index(runs: Sequence[Listed], query: str = "") -> str:
    """Return the list of runs; `query` is the search text."""
    words = query.casefold().split()
    shown = [run for run in runs if all(word in _searched(run) for word in words)]
    newest_first = sorted(shown, key=lambda run: (run.started_utc, run.folder.name), reverse=True)
    return template("index.html.j2").render(runs=newest_first, total=len(runs), query=query)


def compare(before: Listed, after: Listed, found: Changes) -> str:
    """Compare the second run with the first."""
    return template("compare.html.j2").render(
        before=before,
        after=after,
        headline=headline(found),
        grid=grid(found),
        reasons=reasons(found),
        found=found,
    )


def problem(title: str, what: str, remedy: str) -> str:
    """Return a page that names what could not be shown, and a remedy."""
    return template("problem.html.j2").render(title=title, what=what, remedy=remedy)


def _searched(run: Listed) -> str:
    return " ".join([run.name, run.title, run.lab, run.answer, *run.profiles]).casefold()
