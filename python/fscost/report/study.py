"""Writers of a study's report: terminal, Markdown and JSON."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from io import StringIO
from math import isfinite
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fscost import files
from fscost.report import activity, document, markdown
from fscost.report.width import columns
from fscost.study import Among, JudgedClaim, JudgedCriterion, Measured, Report
from fscost.view.grid import Grid
from fscost.view.study import Section, StudyView, disk_rows, study_view

STUDY_MARKDOWN, STUDY_JSON = "study.md", "study.json"
_LONGEST_WORD = 14
_MANY_COLUMNS, _WIDE = 7, 100
_STYLES = {
    "reproduced": "green",
    "holds": "green",
    "not reproduced here": "red",
    "reversed": "red",
    "fails": "red",
    "partly": "yellow",
    "inconclusive": "dim",
    "cannot be tested": "dim",
    "open": "dim",
}


def keep(report: Report) -> None:
    """Write study.md and study.json beside the run's tables, and pictures if the study requests
    them."""
    for name, text in (
        (STUDY_MARKDOWN, markdown_text(study_view(report))),
        (STUDY_JSON, json_text(report)),
    ):
        with files.replacing(report.results.folder / name, follow=False) as file:
            file.write(text.encode("utf-8", "replace"))
    if report.study.has_activity:
        activity.keep(report.results)


def show(report: Report, file: TextIO = sys.stdout, *, is_by_disk: bool = False) -> None:
    """Print the report to `file`, in its width (80 to 120 columns), with colour only on a
    terminal."""
    view = study_view(report, is_by_disk=is_by_disk)
    if file.isatty():
        _print(view, Console(file=file, width=columns(file), highlight=False))
    else:
        file.write(terminal_text(view, columns(file)))


def terminal_text(view: StudyView, width: int) -> str:
    """Return the report without colour."""
    buffer = StringIO()
    _print(
        view,
        Console(file=buffer, width=width, color_system=None, force_terminal=False, highlight=False),
    )
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def markdown_text(view: StudyView) -> str:
    """Return the report as Markdown, in the same order."""
    blocks = [f"## {markdown.escape(view.title)}", *map(markdown.escape, view.about)]
    for section in view.sections:
        blocks.append(f"### {markdown.escape(section.title)}")
        if section.grid is not None:
            blocks.append(markdown.table(section.grid))
        blocks += map(markdown.escape, section.lines)
    return "\n\n".join(blocks) + "\n"


def json_text(report: Report, *, is_by_disk: bool = False) -> str:
    """Return one object: published values, measured values, and the values that decided each
    verdict. The samples are in samples.parquet."""
    manifest = report.results.manifest
    value = {
        "study": report.study.name,
        "source": report.study.source,
        "url": report.study.url,
        "run": {
            "folder": str(report.results.folder),
            "state": manifest.state,
            "seed": manifest.seed,
            "request": manifest.request,
            "kernel": manifest.environment.get("kernel"),
        },
        "comparisons": [
            {
                "kernel": findings.kernel,
                "title": comparison.title,
                "phase": change.phase,
                "with": report.study.profiles[comparison.with_].name,
                "without": report.study.profiles[comparison.without].name,
                "printed": change.printed,
                **{
                    name: _pair(change.published[i], change.measured[i])
                    for i, name in enumerate(
                        ("with_bytes", "without_bytes", "of_with", "of_without")
                    )
                },
            }
            for findings in report.findings
            for comparison, changes in findings.comparisons
            for change in changes
        ],
        "tables": [
            {
                "kernel": findings.kernel,
                "title": table.title,
                "lines": [
                    {
                        "label": entry.line.label,
                        "unit": entry.line.unit,
                        **{
                            report.study.profiles[short].name: _pair(
                                entry.published[short], entry.measured[short]
                            )
                            for short in table.columns
                        },
                    }
                    for entry in lines
                ],
            }
            for findings in report.findings
            for table, lines in findings.tables
        ],
        "claims": [
            {"kernel": findings.kernel, **_claim(judged)}
            for findings in report.findings
            for judged in findings.claims
        ],
        "skipped": [asdict(entry) for entry in manifest.skipped],
        **({"disks": [asdict(row) for row in disk_rows(report)]} if is_by_disk else {}),
        "failed": [
            {"cell": cell.cell, "profile": cell.profile, "because": cell.because}
            for cell in manifest.failed
        ],
    }
    return document.text("study", value)


def _claim(judged: JudgedClaim) -> dict[str, Any]:
    return {
        "claim": judged.claim.text,
        "verdict": judged.verdict.value,
        "rule": judged.claim.rule,
        "criteria": [_criterion(entry) for entry in judged.criteria],
        **({} if judged.among is None else {"among_measured": _among(judged.among)}),
    }


def _among(among: Among) -> dict[str, Any]:
    return {
        "missing": list(among.missing),
        "verdict": among.verdict.value,
        "criteria": [_criterion(entry) for entry in among.criteria],
    }


def _criterion(entry: JudgedCriterion) -> dict[str, Any]:
    formula = entry.criterion.formula
    return {
        "label": entry.criterion.label,
        "formula": None if formula is None else formula.text,
        "unit": entry.criterion.unit,
        "at_least": entry.criterion.at_least,
        "at_most": entry.criterion.at_most,
        "outcome": entry.outcome.value,
        **_pair(entry.published, entry.measured),
    }


def _pair(published: float | None, measured: Measured) -> dict[str, Any]:
    found = measured.interval
    values: dict[str, Any]
    if measured.bounds is not None:
        # JSON has no infinity: an end that is not known is null.
        ends = (measured.bounds.low, measured.bounds.high)
        low, high = (end if end is not None and isfinite(end) else None for end in ends)
        values = {"n": measured.bounds.n, "median": None, "low": low, "high": high}
        values["whatever"] = list(measured.unknown)
    elif found is None:
        values = {"n": 0, **dict.fromkeys(("median", "low", "high"))}
    else:
        values = asdict(found) | ({"is_virtual": True} if measured.is_virtual else {})
    if (found is None and measured.bounds is None) or measured.because:
        values["because"] = measured.because
    return {"published": published, **values}


def _print(view: StudyView, console: Console) -> None:
    console.print(Text(view.title, style="bold"))
    for line in view.about:
        console.print(Text(line))
    for section in view.sections:
        console.print()
        _section(section, console)
    console.print()
    console.print(
        Text(f"Results: {view.folder} (study.md, study.json; `fscost show` prints every phase)"),
        soft_wrap=True,
    )


def _section(section: Section, console: Console) -> None:
    console.print(Text(section.title, style="bold"))
    if section.grid is not None:
        console.print(_table(section.grid, console.width))
    for line in section.lines:
        console.print(Text(line))


def _table(grid: Grid, width: int) -> Table:
    gap = 1 if len(grid.header) >= _MANY_COLUMNS and width < _WIDE else 2
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        header_style="bold",
        show_header=any(grid.header),
    )
    for index, name in enumerate(grid.header):
        justify = _justify(index, grid.rows)
        # Words are not broken if there is room; a claim or a label may wrap between words.
        words = [name, *(row[index] for row in grid.rows)] if justify == "left" else [name]
        longest = max((len(word) for text in words for word in text.split()), default=0)
        table.add_column(
            Text(name), justify=justify, overflow="fold", min_width=min(longest, _LONGEST_WORD)
        )
    for row in grid.rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return table


def _justify(column: int, rows: Sequence[Sequence[str]]) -> Any:
    """Align numbers to the right and words to the left."""
    words = column == 0 or all(not row[column] or row[column][0].isalpha() for row in rows)
    return "left" if words else "right"
