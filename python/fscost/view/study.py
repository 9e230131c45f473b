"""A study's report as rows and columns of text, independent of the output format."""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isinf

import pyarrow as pa

from fscost import study
from fscost.stats import Interval, Row, summarise
from fscost.view.by_disk import by_disk
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.power_cuts import power_cuts
from fscost.view.run import conditions, problems
from fscost.view.tables import Table
from fscost.view.units import human, human_bytes, human_seconds, human_share

_UNSEEN = 0.005
"""Half-width of an interval, relative to its median, below which it is not shown: it would be
±0%."""
_MEANINGLESS = 10
"""Half-width of an interval, relative to its median, above which its ends say only that it is
wide."""
_FORMATS: Mapping[str, Callable[[float], str]] = {
    "ratio": lambda value: f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}",
    "percent": human_share,
    "bytes": human_bytes,
    "s": human_seconds,
}


@dataclass(frozen=True)
class Section:
    """A heading, followed by a table, lines of text, or both."""

    title: str
    grid: Grid | None = None
    lines: Sequence[str] = ()
    claim: int | None = None
    """Number of the section's claim, as in `claims`."""


@dataclass(frozen=True)
class StudyView:
    """View of a study's run."""

    title: str
    about: Sequence[str]
    sections: Sequence[Section]
    folder: str


def study_view(report: study.Report, *, is_by_disk: bool = False) -> StudyView:
    """Compute the view; nothing is printed. `is_by_disk`: include a table of each disk's
    traffic."""
    found, results = report.study, report.results
    sections = [_verdicts(report)]
    for findings in report.findings:
        if findings.comparisons:
            sections.append(_comparisons(found, findings))
        sections += [
            _section(found.published, table, lines, _at(findings))
            for table, lines in findings.tables
        ]
    if is_by_disk:
        disks = by_disk(disk_rows(report), results.manifest.profile_names)
        sections.append(Section(disks.title, disks))
    for index in range(len(found.claims)):
        sections.append(
            _claim(
                found.published,
                [(_at(findings), findings.claims[index]) for findings in report.findings],
                index + 1,
            )
        )
    sections.append(
        Section(
            "How to read it",
            None,
            [
                *study.RULES,
                *_counts(report),
                *map(plain, [*conditions(results), *filter(None, [power_cuts(results)])]),
            ],
        )
    )
    notes = [
        f"{ref.profile}.{ref.phase}.{ref.metric}: {note}"
        for ref, note in found.published.notes.items()
    ]
    if notes:
        sections.append(Section("On the published figures", None, notes))
    wrong = problems(results)
    if wrong:
        sections.append(Section("Skipped and failed", None, wrong))
    return StudyView(
        title=f"Study {found.name}: {found.title}",
        about=[" ".join(found.method.split()), f"Published: {found.source}. {found.url}"],
        sections=sections,
        folder=str(results.folder),
    )


CLAIMS = pa.schema(
    {
        "claim": pa.int64(),
        "text": pa.string(),
        "kernel": pa.string(),
        "criterion": pa.string(),
        "unit": pa.string(),
        **dict.fromkeys(
            ("at_least", "at_most", "published", "median", "low", "high"), pa.float64()
        ),
        "n": pa.int64(),
        "outcome": pa.string(),
        "verdict": pa.string(),
    }
)


def claims(reports: Mapping[str, study.Report]) -> Table:
    """Return a line for each criterion of each claim under each kernel, with the values that
    decided the verdicts. `reports`: runs of one study, by the name that replaces the kernel's if a
    run has only one kernel."""
    rows = []
    for name, report in reports.items():
        for number in range(len(report.study.claims)):
            for findings in report.findings:
                judged = findings.claims[number]
                rows += [
                    {
                        "claim": number + 1,
                        "text": judged.claim.text,
                        "kernel": plain(findings.kernel) or name,
                        "verdict": judged.verdict.value,
                        **_decided(entry),
                    }
                    for entry in judged.criteria
                ]
    data = pa.Table.from_pylist(rows, CLAIMS)
    units = dict.fromkeys(("at_least", "at_most", "published", "median", "low", "high"), "unit")
    return Table("claims", "What decided each verdict", data, units)


def _decided(entry: study.JudgedCriterion) -> dict[str, object]:
    criterion, interval = entry.criterion, entry.measured.interval
    return {
        "criterion": criterion.label,
        "unit": criterion.unit,
        "at_least": criterion.at_least,
        "at_most": criterion.at_most,
        "published": entry.published,
        "median": interval and interval.median,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "n": 0 if interval is None else interval.n,
        "outcome": entry.outcome.value,
    }


def verdict_counts(findings: study.Findings) -> str:
    """Return the number of claims with each verdict, in words."""
    counts = Counter(judged.verdict for judged in findings.claims)
    return ", ".join(f"{counts[each]} {each.value}" for each in study.Verdict if counts[each])


def verdict_text(judged: study.JudgedClaim) -> str:
    """Return the verdict, and the second one if there is one."""
    among = judged.among
    second = "" if among is None else f"; among those measured: {among.verdict.value}"
    return judged.verdict.value + second


def study_answers(report: study.Report) -> list[str]:
    """Return a sentence for each kernel."""
    return [
        f"Of {len(findings.claims)} claims{_under(findings)}: {verdict_counts(findings)}."
        for findings in report.findings
    ]


def _under(findings: study.Findings) -> str:
    return f" under Linux {plain(findings.kernel)}" if findings.kernel else ""


def disk_rows(report: study.Report) -> list[Row]:
    """Return the run's rows of single disks, as `fscost show --by-disk` does."""
    results = report.results
    return [
        row
        for row in summarise(results.samples, results.manifest.baseline, by_disk=True)
        if row.disk
    ]


def _at(findings: study.Findings) -> str:
    """Suffix that marks the items of this kernel, if there are several kernels."""
    return f" @{plain(findings.kernel)}" if findings.kernel else ""


def _verdicts(report: study.Report) -> Section:
    header = ("claim", *(_at(findings).strip() or "verdict" for findings in report.findings))
    rows = [
        (claim.text, *(verdict_text(findings.claims[index]) for findings in report.findings))
        for index, claim in enumerate(report.study.claims)
    ]
    return Section("Verdicts", Grid("", header, rows), _way_on(report))


def _way_on(report: study.Report) -> list[str]:
    """Suggest a command if more repetitions, or a larger run, may decide open criteria."""
    judged = [
        entry
        for findings in report.findings
        for claim in findings.claims
        for entry in claim.criteria
    ]
    return [*_more_repetitions(report, judged), *_larger(report, judged)]


def _larger(report: study.Report, judged: Sequence[study.JudgedCriterion]) -> list[str]:
    small = sum(study.is_too_small(entry) for entry in judged)
    scales = list(report.study.scales)
    scale = report.results.manifest.request.get("scale")
    larger = scales[scales.index(scale) + 1 :] if scale in scales else scales[-1:]
    if not small or not larger:
        return []
    command = f"fscost study run {report.study.name} --scale {larger[0]}"
    return [plain(f"A larger run may decide {small} of the open criteria: {command}")]


def _more_repetitions(report: study.Report, judged: Sequence[study.JudgedCriterion]) -> list[str]:
    undecided = [entry for entry in judged if entry.measured.because in study.MORE_MAY_DECIDE]
    if not undecided:
        return []
    repetitions = (
        max(Counter(cell.profile for cell in report.results.manifest.done).values(), default=0) + 3
    )
    folder = shlex.quote(str(report.results.folder))
    command = (
        f"fscost study run {report.study.name} --resume {folder} --min-repetitions {repetitions}"
        " --max-minutes 60"
    )
    return [plain(f"More repetitions may decide {len(undecided)} of the open criteria: {command}")]


def _comparisons(found: study.Study, findings: study.Findings) -> Section:
    rows: list[Sequence[str]] = []
    for comparison, changes in findings.comparisons:
        title = comparison.title
        for change in changes:
            texts = [
                found.published.texts.get(found.reference(short, change.phase), "")
                for short in (comparison.with_, comparison.without)
            ]
            rows += [
                (title, change.phase, *_published(change, texts)),
                ("", "", *_measured(change)),
            ]
            title = ""
    header = ("mount", "step", "", "with", "without", "(with − without) ÷ with", "… ÷ without", "n")
    return Section(
        "With and without a journal: device bytes written, published above measured"
        + _at(findings),
        Grid("", header, rows),
    )


def _published(change: study.Change, texts: Sequence[str]) -> Sequence[str]:
    *_, of_without = change.published
    return (
        "published",
        *(text or NOTHING for text in texts),
        change.printed,
        _number(of_without, "percent"),
        "",
    )


def _measured(change: study.Change) -> Sequence[str]:
    with_, without, of_with, of_without = change.measured
    n = "" if of_with.interval is None else str(of_with.interval.n)
    return (
        "measured",
        _number(_median(with_), "bytes"),
        _number(_median(without), "bytes"),
        _with_interval(of_with, "percent"),
        _number(_median(of_without), "percent"),
        n,
    )


def _section(
    published: study.Published, table: study.Table, lines: Sequence[study.ReportedLine], at: str
) -> Section:
    """Build a section. Times by an emulated guest's clock are called virtual: in the title if all
    lines have such times, else line by line."""
    virtual = [any(measured.is_virtual for measured in line.measured.values()) for line in lines]
    labels = [
        f"{line.line.label} (virtual)" if is_virtual and not all(virtual) else line.line.label
        for line, is_virtual in zip(lines, virtual, strict=True)
    ]
    title = f"{table.title}{' (measured: virtual)' if all(virtual) else ''}{at}"
    return Section(
        title, (_turned if table.is_turned else _upright)(published, table, lines, labels)
    )


def _upright(
    published: study.Published,
    table: study.Table,
    lines: Sequence[study.ReportedLine],
    labels: Sequence[str],
) -> Grid:
    header = [
        "",
        *(f"published, {table.columns[short]}" for short in table.published),
        *table.columns.values(),
    ]
    rows = [
        [
            label,
            *(_figure(published, line, short) for short in table.published),
            *(_with_width(line.measured[short], line.line.unit) for short in table.columns),
        ]
        for label, line in zip(labels, lines, strict=True)
    ]
    return Grid("", header, rows)


def _turned(
    published: study.Published,
    table: study.Table,
    lines: Sequence[study.ReportedLine],
    labels: Sequence[str],
) -> Grid:
    """Build a table with a row for each profile, preceded by a row of the published values."""
    rows: list[Sequence[str]] = []
    for short, title in table.columns.items():
        measured = [_with_width(line.measured[short], line.line.unit) for line in lines]
        if short in table.published:
            rows.append((title, "published", *(_figure(published, line, short) for line in lines)))
            rows.append(("", "measured", *measured))
        else:
            rows.append((title, *([""] if table.published else []), *measured))
    return Grid("", ("", *([""] if table.published else []), *labels), rows)


def _figure(published: study.Published, line: study.ReportedLine, short: str) -> str:
    """Return a published value as the source prints it, or a value computed from the source's
    figures as a number."""
    return published.text(line.line.cells[short]) or _number(line.published[short], line.line.unit)


def _claim(
    published: study.Published, under: Sequence[tuple[str, study.JudgedClaim]], number: int
) -> Section:
    """Build the section of a claim: each criterion under one kernel after the other, because
    verdicts are by kernel."""
    claim = under[0][1].claim
    rows = [
        criterion_row(published, judged.criteria[index], at)
        for index in range(len(claim.criteria))
        for at, judged in under
    ]
    lines = [f"Rule: {claim.rule}."]
    reasons: dict[tuple[str, str], list[str]] = {}
    for at, judged in under:
        for entry in judged.criteria:
            if because := entry.measured.because:
                is_testable = entry.outcome is not study.Outcome.NOT_TESTABLE
                word = "inconclusive" if is_testable else entry.outcome.value
                reasons.setdefault((word, because), []).append(entry.criterion.label + at)
    lines += [
        f"{'; '.join(labels)}: {word}, because {plain(because)}."
        for (word, because), labels in reasons.items()
    ]
    for at, judged in under:
        for entry in judged.criteria:
            if entry.measured.bounds is not None:
                missing = ", ".join(entry.measured.unknown)
                lines.append(
                    f"{entry.criterion.label + at}: decided whatever {missing} would give."
                )
        lines += _among(judged, at)
    if claim.explanation:
        lines.append(f"Explanation (ours, not measured): {claim.explanation}")
    verdicts = ", ".join(f"{judged.verdict.value.upper()}{at}" for at, judged in under)
    return Section(
        f"{claim.text}: {verdicts}",
        Grid("", ("", "holds when", "published", "measured", "n", ""), rows),
        lines,
        number,
    )


def _among(judged: study.JudgedClaim, at: str) -> list[str]:
    """Describe the second verdict."""
    among = judged.among
    if among is None:
        return []
    values = "; ".join(
        f"{entry.criterion.label} {_with_interval(entry.measured, entry.criterion.unit)}"
        f" {entry.outcome.value}"
        for entry in among.criteria
    )
    missing = ", ".join(among.missing)
    return [f"Among those measured{at} (without {missing}): {among.verdict.value} ({values})."]


def criterion_row(
    published: study.Published, entry: study.JudgedCriterion, at: str
) -> Sequence[str]:
    criterion = entry.criterion
    interval = entry.measured.interval or entry.measured.bounds
    return (
        criterion.label + at,
        _bounds(criterion.at_least, criterion.at_most, criterion.unit),
        (criterion.formula and published.text(criterion.formula))
        or _number(entry.published, criterion.unit),
        _with_interval(entry.measured, criterion.unit),
        "0" if interval is None else str(interval.n),
        entry.outcome.value,
    )


def _bounds(least: float | None, most: float | None, unit: str) -> str:
    if least is None and most is None:
        return NOTHING
    if least is not None and most is not None:
        return f"{_number(least, unit)} to {_number(most, unit)}"
    return f"≤ {_number(most, unit)}" if least is None else f"≥ {_number(least, unit)}"


def _counts(report: study.Report) -> list[str]:
    repetitions = Counter(cell.profile for cell in report.results.manifest.done)
    counts = {repetitions[str(profile.get("name"))] for profile in report.results.manifest.profiles}
    finished = (
        f"{min(counts)}"
        if len(counts) == 1
        else ", ".join(f"{count} of {profile}" for profile, count in repetitions.items())
    )
    options = ", ".join(
        f"{name}={value}" for name, value in report.results.manifest.workload.get("options", [])
    )
    scale = report.results.manifest.request.get("scale", "")
    return [
        (
            "Medians of n repetitions, interleaved and paired by repetition; the 95 % interval is"
            " in brackets, or half its width after ± (omitted below 0.5 %)."
        ),
        f"Finished repetitions: {finished}.",
        plain(f"Scale {scale}: {options}."),
    ]


def _median(measured: study.Measured) -> float | None:
    return None if measured.interval is None else measured.interval.median


def _number(value: float | None, unit: str) -> str:
    return or_nothing(value, _FORMATS.get(unit, partial(human, unit=unit)))


def _with_interval(measured: study.Measured, unit: str) -> str:
    if measured.bounds is not None:
        return _range(measured.bounds, unit)
    found = measured.interval
    if found is None or found.low is None:
        return _number(_median(measured), unit)
    if found.relative_half_width is not None and found.relative_half_width > _MEANINGLESS:
        return f"{_number(found.median, unit)} ±>1000%"
    bare = [_number(bound, unit).removesuffix(" %") for bound in (found.low, found.high)]
    return f"{_number(found.median, unit)} ({bare[0]} to {bare[1]})"


def _range(bounds: Interval, unit: str) -> str:
    """Return what is known of a value without all of its measurements; zero is no news."""
    low, high = bounds.low, bounds.high
    if low is None or high is None or (low <= 0 and isinf(high)):
        return NOTHING
    if low <= 0:
        return f"at most {_number(high, unit)}"
    return (
        f"at least {_number(low, unit)}"
        if isinf(high)
        else (f"{_number(low, unit)} to {_number(high, unit)}")
    )


def _with_width(measured: study.Measured, unit: str) -> str:
    text = _number(_median(measured), unit)
    width = None if measured.interval is None else measured.interval.relative_half_width
    if width is None or width < _UNSEEN:
        return text
    return f"{text} ±{width * 100:.0f}%" if width < 1 else f"{text} ±>100%"
