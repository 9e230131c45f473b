"""`fscost diff`, once its command line is parsed."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from fscost.cli.diff import Options
from fscost.cli.lines import say
from fscost.cli.output.emit import STDOUT, write
from fscost.errors import InputError
from fscost.report import changes, document
from fscost.report.junit import junit
from fscost.report.machine import csv_of
from fscost.report.terminal import print_parts
from fscost.results import METRICS, RunResults, load
from fscost.view.changes import Changes, Condition, compared, headline, reasons
from fscost.view.grid import Grid, plain
from fscost.view.per import parse_per
from fscost.view.relation import Relation, life, relation, with_years

BEYOND = 1
"""Exit status if a --fail-if condition holds."""


def differ(options: Options) -> None:
    """Compare the runs that the options name, and print what they ask for."""
    runs, markdown = options.runs, options.markdown
    if len(runs) < 2:
        raise InputError(
            "a comparison needs at least two runs", "name two or more, or use `fscost show`"
        )
    conditions = [Condition.parse(text) for text in options.fail_if or []]
    needs_two = conditions or options.brief or markdown is not None or options.junit is not None
    if len(runs) > 2 and needs_two:
        raise InputError(
            "--fail-if, --markdown, --junit and --brief need exactly two runs",
            "name exactly two runs: the first, and the one to compare with it",
        )
    named_files = (options.csv, markdown, options.junit)
    if [options.json, options.brief, *(each == STDOUT for each in named_files)].count(True) > 1:
        raise InputError(
            "two outputs would be mixed on standard output",
            "keep one of --json, --brief, --csv -, --markdown - and --junit -, and name files",
        )
    results = [load(run, trust=options.trust) for run in runs]
    if options.ssd is not None:
        results = _worn(results, options.ssd)
    per = None if options.per is None else parse_per(options.per)
    is_per = per is not None
    found = relation(named(with_years(results)), options.metric, per, is_wide=options.wide)
    if options.csv is not None:
        give(options.csv, _csv_text(found, options.metric))
    if options.brief:
        print(plain(headline(compared(*results, is_per=is_per))))
    elif STDOUT not in named_files:
        answer = _answer(results, found, is_per=is_per) if not options.json else ()
        show(found, options.metric, is_json=options.json, answer=answer)
    if conditions or markdown is not None or options.junit is not None:
        _judge(compared(*results, is_per=is_per), conditions, markdown, options.junit)


def _worn(results: list[RunResults], ssd: str) -> list[RunResults]:
    """Add NAND bytes and life on the device to each run."""
    from fscost import wear

    device = wear.find(ssd)
    for note in [note for run in results for note in wear.unreplayed(run)]:
        say(note)
    return [wear.replayed(run, device) for run in results]


def _csv_text(found: Relation, metric: str) -> str:
    """Return a line for each metric, profile and run. The first run has no ratio."""
    several = {metric: found, **found.modelled}
    rows = [
        {"metric": name, "unit": METRICS[name].unit, **row}
        for name, each in several.items()
        for row in each.rows
    ]
    header = list(dict.fromkeys(column for row in rows for column in row))
    return csv_of(header, ([row.get(column) for column in header] for row in rows))


def give(name: str, text: str) -> None:
    """Write text to a file, or to standard output for `-`."""
    if name == STDOUT:
        sys.stdout.write(text)
    else:
        write(Path(name), text)


def _judge(
    found: Changes, conditions: list[Condition], markdown: str | None, tests: str | None
) -> None:
    """Write the changes as Markdown and as test cases, and exit with BEYOND if a condition
    holds."""
    for name, text in ((markdown, changes.text), (tests, lambda each: junit(each, conditions))):
        if name is not None:
            give(name, text(found))
    if beyond(found, conditions):
        raise typer.Exit(BEYOND)


def beyond(found: Changes, conditions: Sequence[Condition], prefix: str = "") -> bool:
    """Print the conditions that are true, and return whether any is."""
    held = [(each, change) for each in conditions for change in each.holds(found)]
    for condition, change in held:
        line = f"fscost: {prefix}{condition.text} is true of {change.profile}: {change.ratio_text}"
        print(plain(line), file=sys.stderr)
    return bool(held)


def _answer(runs: list[RunResults], related: Relation, *, is_per: bool) -> list[str]:
    """Return the answer for two runs that have a profile in common, the causes that changed, and
    the consequences for a device's life."""
    names = [set(run.manifest.profile_names) for run in runs]
    if len(runs) != 2 or not names[0] & names[1]:
        return []
    found = compared(*runs, is_per=is_per)
    why = (f"Why: {line}" for line in reasons(found))
    return [headline(found), *why, *life(related, runs[0])]


def named(runs: list[RunResults]) -> dict[str, RunResults]:
    """Map the names of the runs' folders to the runs."""
    names = [run.folder.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
    if len(set(names)) < len(names):
        raise InputError(f"{names[0]} is named twice", "name each run once")
    return dict(zip(names, runs, strict=True))


def show(found: Relation, metric: str, *, is_json: bool, answer: Sequence[str] = ()) -> None:
    """Print the differences to standard output, the answer first."""
    if is_json:
        rows = [dict(row) for row in found.rows]
        value: dict[str, Any] = {"metric": metric, "rows": rows, "notes": list(found.notes)}
        if found.modelled:
            value["modelled"] = {
                name: [dict(row) for row in each.rows] for name, each in found.modelled.items()
            }
        sys.stdout.write(document.text("diff", value))
        return
    if not answer:
        print_parts(plain(found.title), found.parts, sys.stdout)
        return
    grid, *rest = found.parts
    titled = replace(grid, title=found.title) if isinstance(grid, Grid) else grid
    print_parts(plain(answer[0]), [*map(plain, answer[1:]), titled, *rest], sys.stdout)
