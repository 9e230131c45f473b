"""Comparison of a finished run of a study with the published results: numbers and verdicts, without
text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscost import profile
from fscost.errors import InputError
from fscost.results import RunResults
from fscost.study.formula import Formula
from fscost.study.judge import JudgedClaim, judge
from fscost.study.measure import Measured, Numbers, published_value
from fscost.study.model import Comparison, Line, Study, Table


@dataclass(frozen=True)
class Change:
    """One phase with and without an option: the values with it, without it, (with − without) ÷ with
    and (with − without) ÷ without."""

    phase: str
    printed: str
    published: tuple[float | None, ...]
    measured: tuple[Measured, ...]


@dataclass(frozen=True)
class ReportedLine:
    """Line of a table: published and measured values by short name of the profile."""

    line: Line
    published: dict[str, float | None]
    measured: dict[str, Measured]


@dataclass(frozen=True)
class Findings:
    """Findings of the run under one kernel. Claims are judged under each kernel separately. The
    name is empty if there is only one kernel."""

    kernel: str
    comparisons: tuple[tuple[Comparison, tuple[Change, ...]], ...]
    tables: tuple[tuple[Table, tuple[ReportedLine, ...]], ...]
    claims: tuple[JudgedClaim, ...]


@dataclass(frozen=True)
class Report:
    """Report on a study's run, as shown to a reader: its findings under each kernel, in the
    requested order."""

    study: Study
    results: RunResults
    findings: tuple[Findings, ...]


def report(study: Study, results: RunResults) -> Report:
    """Build the report. It depends on the run's samples only, so the same run gives the same
    report."""
    if results.manifest.request.get("study") != study.name:
        raise InputError(
            f"{results.folder} is not a run of the study {study.name}",
            "name a folder that `fscost study run` made",
        )
    return Report(study, results, tuple(_findings(study, results, kernels=_kernels(results))))


def _kernels(results: RunResults) -> Sequence[str]:
    """Return the kernels as the request names them. The request comes from a file, and older files
    have none."""
    kernels = results.manifest.request.get("kernel", [])
    if not isinstance(kernels, list) or not all(isinstance(kernel, str) for kernel in kernels):
        raise InputError(
            f"{results.folder}: its manifest's request.kernel is damaged: {kernels!r}",
            "start a new run",
        )
    return kernels


def _findings(study: Study, results: RunResults, kernels: Sequence[str]) -> Iterator[Findings]:
    for index, kernel in enumerate(kernels or [""]):
        names = {
            short: profile.on_kernels(found, kernels)[index].name
            for short, found in study.profiles.items()
        }
        numbers = Numbers.of(study, results, names)
        yield Findings(
            Path(kernel).name if len(kernels) > 1 else "",
            tuple(
                (entry, tuple(_change(study, numbers, entry, phase) for phase in entry.printed))
                for entry in study.comparisons
            ),
            tuple(
                (table, tuple(_line(study, numbers, line) for line in table.lines))
                for table in study.tables
            ),
            tuple(judge(claim, numbers, study.published) for claim in study.claims),
        )


def _change(study: Study, numbers: Numbers, entry: Comparison, phase: str) -> Change:
    with_, without = (
        f"{short}.{phase.replace('-', '_')}" for short in (entry.with_, entry.without)
    )
    difference = f"({with_} - {without})"
    texts = (with_, without, f"{difference} / {with_}", f"{difference} / {without}")
    formulas = [Formula.parse(text, study.metric) for text in texts]
    return Change(
        phase,
        entry.printed[phase],
        tuple(published_value(formula, study.published) for formula in formulas),
        tuple(numbers.measured(formula) for formula in formulas),
    )


def _line(study: Study, numbers: Numbers, line: Line) -> ReportedLine:
    return ReportedLine(
        line,
        {short: published_value(formula, study.published) for short, formula in line.cells.items()},
        {short: numbers.measured(formula) for short, formula in line.cells.items()},
    )
