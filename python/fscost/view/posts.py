"""Runs of several studies on one page: the claims of published posts that hold under each
kernel."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from fscost.errors import InputError
from fscost.results import RunResults
from fscost.study import RULES, Findings, Outcome, Report, Study, Verdict
from fscost.view.grid import NOTHING, Grid, plain
from fscost.view.power_cuts import power_cuts
from fscost.view.run import conditions
from fscost.view.study import CLAIMS, claims, criterion_row, verdict_text

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DECIDED = (Outcome.HOLDS, Outcome.FAILS, Outcome.REVERSED)


@dataclass(frozen=True)
class Column:
    """One study under one kernel, in one run."""

    kernel: str
    report: Report
    findings: Findings


@dataclass(frozen=True)
class Post:
    """A published experiment and its runs. `answer`: what the runs say, in prose. `decided`:
    criteria that the runs decide. `undecided`: why the others are open. `table`: the decided
    criteria with a value, for a chart."""

    study: Study
    answer: str
    runs: Sequence[str]
    verdicts: Grid
    decided: Grid
    undecided: Sequence[str]
    table: pa.Table


@dataclass(frozen=True)
class Posts:
    """Contents of the page about all studies."""

    title: str
    count: str
    others: Mapping[str, Sequence[str]]
    summary: Grid
    rules: Sequence[str]
    posts: Sequence[Post]
    missing: Sequence[str]


def posts(reports: Sequence[Report], answers: Mapping[str, str] | None = None) -> Posts:
    """Build the page: studies in the order of their first runs, with the runs of one study side by
    side. `answers`: a paragraph by name of a study."""
    unknown = sorted(set(answers or ()) - {report.study.name for report in reports})
    if unknown:
        raise InputError(
            f"there is an answer for {unknown[0]!r}, but no run of such a study",
            "name a run of it, or remove the answer",
        )
    by_study: dict[str, list[Column]] = {}
    for report in reports:
        columns = by_study.setdefault(report.study.name, [])
        columns += [
            Column(kernel(report.results, findings), report, findings)
            for findings in report.findings
        ]
    by_study = {name: _told_apart(columns) for name, columns in by_study.items()}
    count = len(by_study)
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return Posts(
        f"What {number} famous post{'s' * (count != 1)} got right",
        *_count(by_study),
        _summary(by_study),
        RULES,
        [_post(columns, (answers or {}).get(name, "")) for name, columns in by_study.items()],
        list(_missing(by_study)),
    )


def kernel(results: RunResults, findings: Findings) -> str:
    """Return the kernel of the findings: a guest's, or the machine's."""
    if findings.kernel:
        return f"{plain(findings.kernel)} (guest)"
    asked = results.manifest.request.get("kernel")
    if isinstance(asked, list) and len(asked) == 1:
        return f"{plain(Path(str(asked[0])).name)} (guest)"
    for cell in results.manifest.done:
        guest = cell.facts.get("guest")
        if isinstance(guest, dict) and guest.get("kernel"):
            return f"{plain(str(guest['kernel']))} (guest)"
    found = results.manifest.environment.get("kernel")
    release = plain(str(found.get("release"))) if isinstance(found, dict) else "unknown"
    # Builds of one release share a column: 6.18.44-a and 6.18.44-b.
    version = re.match(r"\d+(\.\d+)+", release)
    return version[0] if version else release


def _told_apart(columns: Sequence[Column]) -> list[Column]:
    """Add the scale, then a number, to the names of columns under the same kernel."""
    found = list(columns)
    for added in (lambda column, _: plain(_scale(column)), lambda _, number: str(number)):
        counts = Counter(column.kernel for column in found)
        seen: Counter[str] = Counter()
        for at, column in enumerate(found):
            if counts[column.kernel] > 1:
                seen[column.kernel] += 1
                name = f"{column.kernel}, {added(column, seen[column.kernel])}"
                found[at] = replace(column, kernel=name)
    return found


def _scale(column: Column) -> str:
    return str(column.report.results.manifest.request.get("scale", ""))


def _count(by_study: Mapping[str, Sequence[Column]]) -> tuple[str, dict[str, Sequence[str]]]:
    """Count the claims with a verdict in at least one run, and list the others by title."""
    total, among = 0, 0
    open_: list[str] = []
    untestable: list[str] = []
    for name, columns in by_study.items():
        for judged in zip(*(column.findings.claims for column in columns), strict=True):
            total += 1
            found = {each.verdict for each in judged}
            if found == {Verdict.NOT_TESTABLE}:
                because = "; ".join(entry.measured.because for entry in judged[0].criteria)
                untestable.append(f"{name}: {judged[0].claim.text}: {plain(because)}")
                continue
            if found - {Verdict.INCONCLUSIVE, Verdict.NOT_TESTABLE}:
                continue
            if any(each.among is not None for each in judged):
                among += 1
            else:
                open_.append(f"{name}: {judged[0].claim.text}")
    decided = total - among - len(open_) - len(untestable)
    line = f"Of {total} claims, {decided} have a verdict in at least one run"
    line += f", and {among} more among the file systems measured." if among else "."
    lists = (("Without one:", open_), ("Cannot be tested:", untestable))
    return line, {title: entries for title, entries in lists if entries}


def _summary(by_study: Mapping[str, Sequence[Column]]) -> Grid:
    rows = []
    for name, columns in by_study.items():
        for column in columns:
            counts = Counter(judged.verdict for judged in column.findings.claims)
            shown = [str(counts[verdict]) if counts[verdict] else NOTHING for verdict in Verdict]
            rows.append((name, column.kernel, *shown))
    return Grid("", ("study", "Linux", *(verdict.value for verdict in Verdict)), rows, left=(0, 1))


def _post(columns: Sequence[Column], answer: str) -> Post:
    study = columns[0].report.study
    header = ("claim", *(column.kernel for column in columns))
    verdicts = [
        (claim.text, *(verdict_text(column.findings.claims[number]) for column in columns))
        for number, claim in enumerate(study.claims)
    ]
    rows = [
        row for column in columns for row in claims({column.kernel: _only(column)}).data.to_pylist()
    ]
    # Order by criterion, then by kernel, as in the table.
    labels = [entry.label for claim in study.claims for entry in claim.criteria]
    rows.sort(key=lambda row: (row["claim"], labels.index(row["criterion"])))
    # What is only known to lie in a range has no dot.
    decided = [row for row in rows if row["outcome"] in _DECIDED and row["median"] is not None]
    return Post(
        study,
        answer,
        list(dict.fromkeys(line for column in columns for line in _run(column))),
        Grid("", header, verdicts, left=tuple(range(len(header)))),
        Grid(
            "",
            ("criterion", "Linux", "holds when", "published", "measured", "n", ""),
            list(_decided(study, columns)),
            left=(0, 1, 6),
        ),
        list(_undecided(columns)),
        pa.Table.from_pylist(decided, CLAIMS),
    )


def _only(column: Column) -> Report:
    """Restrict the report to one kernel's findings, without the kernel's name, which the column
    shows."""
    return replace(column.report, findings=(replace(column.findings, kernel=""),))


def _run(column: Column) -> Iterator[str]:
    """Describe the place, scale and repetitions of a run."""
    results = column.report.results
    manifest = results.manifest
    counts = Counter(cell.profile for cell in manifest.done)
    n = sorted(set(counts.values())) or [0]
    repetitions = str(n[0]) if len(n) == 1 else f"{n[0]} to {n[-1]}"
    options = " ".join(f"{key}={value}" for key, value in manifest.workload.get("options", ()))
    source = Path(str(manifest.request.get("source") or "")).name
    given = [
        f"scale {manifest.request.get('scale', '')}",
        f"source {source}" if source else "",
        options,
    ]
    scale = ", ".join(plain(each) for each in given if each)
    where = conditions(results)[-2]
    begun = manifest.started_utc[:10]
    yield plain(f"{begun}, {scale}, n = {repetitions}. {where}")
    if (examined := power_cuts(results)) is not None:
        yield plain(examined)
    for reason, profiles in _by_reason(results).items():
        yield plain(f"Not measured: {', '.join(profiles)}, because {reason}.")


def _by_reason(results: RunResults) -> dict[str, list[str]]:
    """Group profiles that were skipped, or have no finished cell, by reason."""
    done = {cell.profile for cell in results.manifest.done}
    found = [(entry.because, entry.profile) for entry in results.manifest.skipped]
    found += [
        (cell.because, cell.profile) for cell in results.manifest.failed if cell.profile not in done
    ]
    reasons: dict[str, list[str]] = {}
    for because, profile in dict.fromkeys(found):
        lines = "; ".join(" ".join(line.split()) for line in because.strip().splitlines())
        reasons.setdefault(lines.rstrip("."), []).append(profile)
    return reasons


def _decided(study: Study, columns: Sequence[Column]) -> Iterator[Sequence[str]]:
    for number, claim in enumerate(study.claims):
        for place in range(len(claim.criteria)):
            for column in columns:
                entry = column.findings.claims[number].criteria[place]
                if entry.outcome in _DECIDED:
                    label, *rest = criterion_row(study.published, entry, "")
                    yield f"{_shortened(claim.text)}: {label}", column.kernel, *rest


def _shortened(text: str) -> str:
    return text if len(text) <= 50 else f"{text[:48].rpartition(' ')[0]} …"


def _undecided(columns: Sequence[Column]) -> Iterator[str]:
    """Yield each reason once, with the number of criteria that it leaves open under each kernel."""
    counts: dict[str, Counter[str]] = {}
    for column in columns:
        for judged in column.findings.claims:
            for entry in judged.criteria:
                if entry.outcome is Outcome.OPEN:
                    because = plain(entry.measured.because)
                    counts.setdefault(because, Counter())[column.kernel] += 1
    for because, kernels in counts.items():
        under = ", ".join(f"{count} under {name}" for name, count in kernels.items())
        yield f"{because}: {under}"


def _missing(by_study: Mapping[str, Sequence[Column]]) -> Iterator[str]:
    """Yield the kernels under which only some studies ran."""
    kernels = dict.fromkeys(column.kernel for each in by_study.values() for column in each)
    for name, columns in by_study.items():
        lacking = [each for each in kernels if each not in {column.kernel for column in columns}]
        if lacking:
            yield f"{name}: no run under {', '.join(lacking)}"
    if any(
        column.report.results.manifest.request.get("scale") != "full"
        for columns in by_study.values()
        for column in columns
    ):
        yield "No study ran at the published scale (--scale full) unless its line says so."
