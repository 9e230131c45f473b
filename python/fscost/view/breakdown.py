"""Breakdown of the bytes written by each profile: a bar, the numbers beside it, and findings in
words."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fscost import stats
from fscost.results import TOTAL, RunResults, written
from fscost.stats import Row, Verdict
from fscost.view.grid import Grid, or_nothing, plain
from fscost.view.units import human_bytes

BAR = "by kind"
"""Header of the column of bars."""
BAR_COLUMNS = 24
DATA_MARK, JOURNAL_MARK, METADATA_MARK, ATIME_MARK, UNKNOWN_MARK = BAR_MARKS = "█▓▒░?"
WRITTEN = "device_write_bytes"
_LEGEND = {
    written.FILE_DATA: f"{DATA_MARK} file data",
    written.JOURNAL: f"{JOURNAL_MARK} journal or log",
    written.METADATA: f"{METADATA_MARK} metadata",
    written.UNKNOWN: f"{UNKNOWN_MARK} unknown",
    written.ATIME: (
        f"{ATIME_MARK} journal and metadata written only for access times, which noatime avoids"
    ),
}
_LABELS = {
    written.FILE_DATA: "data",
    written.JOURNAL: "journal",
    written.METADATA: "metadata",
    written.UNKNOWN: "unknown",
}
_WORTH_SAYING = 0.01
_UNKNOWN_ALLOWED = 0.001
_DOUBTFUL_ALLOWED = 0.001
_PART_WORTH_SAYING = 0.1
"""Minimum part of a difference that is worth mentioning."""
_SHARES = (
    (
        written.ATIME,
        _WORTH_SAYING,
        "Bytes written only for access times, which noatime would have avoided",
        "",
    ),
    (
        written.BY_CAUSE.get("unchanged", ""),
        _WORTH_SAYING,
        "Metadata rewritten with unchanged content, journal copies included",
        "",
    ),
)
_DOUBTS = (
    (
        written.DOUBTFUL,
        _DOUBTFUL_ALLOWED,
        "File data whose file is uncertain (“doubtful” in explain)",
        "",
    ),
    (
        written.UNKNOWN,
        _UNKNOWN_ALLOWED,
        "Unidentified bytes",
        "; any figure here may be off by that much",
    ),
)


@dataclass(frozen=True)
class Breakdown:
    """Breakdown of the bytes of all profiles. `grid` has no rows if nothing is explained.
    `findings`: one sentence each, including `shares` and `doubts`. `not_explained`: profile →
    because."""

    grid: Grid
    notes: Sequence[str]
    findings: Sequence[str]
    not_explained: Mapping[str, str]
    shares: Sequence[str] = ()
    doubts: Sequence[str] = ()

    @property
    def gaps(self) -> list[str]:
        """One line for each reason, with all profiles to which it applies."""
        reasons: dict[str, list[str]] = {}
        for profile, because in self.not_explained.items():
            reasons.setdefault(because, []).append(profile)
        return [
            plain(f"not explained: {', '.join(profiles)}, because {because}")
            for because, profiles in reasons.items()
        ]


_OF_BARS = (
    *(WRITTEN, written.FILE_DATA, written.JOURNAL, written.METADATA),
    *(written.ATIME, written.UNKNOWN),
)
"""What explained profiles have, and damaged samples may lack in part."""


def breakdown(
    results: RunResults, rows: Sequence[Row], profiles: Sequence[str], baseline: str
) -> Breakdown:
    """Break down the totals of `profiles`."""
    explained = explained_totals(rows, profiles)
    not_explained = _not_explained(results, profiles)
    if not explained:
        return Breakdown(Grid("", (), ()), (), (), not_explained)
    longest = max(values[WRITTEN] for values in explained.values())
    shown = [
        metric
        for metric in (*_LABELS, written.ATIME)
        if any(_is_shown(metric, values) for values in explained.values())
    ]
    lines = [
        [
            profile,
            bar(values, longest),
            *(or_nothing(values.get(metric), human_bytes) for metric in shown),
        ]
        for profile, values in explained.items()
    ]
    header = ("profile", BAR, *(_LABELS.get(metric, "access times") for metric in shown))
    legend = "  ".join(words for metric, words in _LEGEND.items() if metric in shown)
    notes = [f"{legend}; the longest bar is {human_bytes(longest)}."]
    grid = Grid("Device bytes written, by kind", header, lines, left=(0, 1))
    doubts, shares = _shares(explained, _DOUBTS), _shares(explained, _SHARES)
    return Breakdown(
        grid,
        notes,
        [*_differences(rows, explained, baseline), *shares, *doubts],
        not_explained,
        shares,
        doubts,
    )


def explained_totals(rows: Sequence[Row], profiles: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the totals of explained profiles, by profile and metric."""
    totals: dict[str, dict[str, float]] = {profile: {} for profile in profiles}
    for row in rows:
        if row.phase == TOTAL and row.profile in totals:
            totals[row.profile][row.metric] = row.median
    return {
        profile: values
        for profile, values in totals.items()
        if all(metric in values for metric in _OF_BARS)
    }


def bar(values: Mapping[str, float], longest: float) -> str:
    """Draw one mark for each `longest ÷ BAR_COLUMNS` bytes. The end of each kind is rounded, so
    that the total length is right."""
    atime, in_journal = values[written.ATIME], values.get(written.JOURNAL_ATIME, 0.0)
    parts = (
        values[written.FILE_DATA],
        values[written.JOURNAL] - in_journal,
        values[written.METADATA] - (atime - in_journal),
        atime,
        values[written.UNKNOWN],
    )
    ends = [
        round(BAR_COLUMNS * sum(parts[: index + 1]) / longest) if longest else 0
        for index in range(len(parts))
    ]
    begins = [0, *ends]
    return "".join(
        mark * max(0, end - begin)
        for mark, begin, end in zip(BAR_MARKS, begins, ends, strict=False)
    )


def way_on(results: RunResults) -> list[str]:
    """Suggest commands that analyze a kept recording further."""
    kept = {cell.profile for cell in results.manifest.done if cell.recording}
    first = next((profile for profile in results.manifest.profile_names if profile in kept), None)
    if first is None:
        return []
    folder = shlex.quote(str(results.folder))
    one = f"fscost explain {folder} --profile {shlex.quote(first)}"
    return [
        plain(f"Why each byte was written: {one}"),
        plain(f"Report with charts: fscost report {folder}"),
    ]


def _not_explained(results: RunResults, profiles: Sequence[str]) -> dict[str, str]:
    """Find the profiles with an unexplained cell. Such a cell has none of these metrics."""
    samples = results.samples
    explained = set(stats.where(samples, written.METADATA)["cell"].to_pylist())
    found: dict[str, str] = {}
    for cell in results.manifest.done:
        if cell.cell not in explained and cell.profile in profiles:
            found.setdefault(
                cell.profile, str(cell.facts.get("not_explained") or _without_recording(results))
            )
    return found


def _without_recording(results: RunResults) -> str:
    return (
        "a real device is not recorded"
        if results.manifest.options.get("device")
        else "its recording was not analysed during the run"
    )


def _is_shown(metric: str, values: Mapping[str, float]) -> bool:
    """Check that a value is worth a column: columns that are zero for all profiles are left out, as
    are negligible unknown bytes."""
    return values.get(metric, 0.0) > (
        _UNKNOWN_ALLOWED * values[WRITTEN] if metric == written.UNKNOWN else 0
    )


def _differences(
    rows: Sequence[Row], explained: Mapping[str, Mapping[str, float]], baseline: str
) -> list[str]:
    """Return one sentence for each profile whose bytes written differ from the baseline's."""
    called = [
        row
        for row in rows
        if row.phase == TOTAL
        and row.metric == WRITTEN
        and row.verdict in (Verdict.LOWER, Verdict.HIGHER)
    ]
    return [
        plain(difference(row.profile, baseline, explained[row.profile], explained[baseline]))
        for row in called
        if row.profile in explained and baseline in explained
    ]


def _shares(
    explained: Mapping[str, Mapping[str, float]], sentences: Sequence[tuple[str, float, str, str]]
) -> list[str]:
    """Return one sentence for each metric whose share reaches its threshold in some profile."""
    found = []
    for metric, least, what, then in sentences:
        worth = {
            profile: values
            for profile, values in explained.items()
            if _worth(values, metric, least)
        }
        shares = [
            f"{_share(values[metric], values[WRITTEN])} under {profile}"
            for profile, values in worth.items()
        ]
        if shares:
            found.append(plain(f"{what}: {', '.join(shares)}{then}"))
    return found


def _worth(values: Mapping[str, float], metric: str, least: float) -> bool:
    return values[WRITTEN] > 0 and values.get(metric, 0.0) >= least * values[WRITTEN]


def difference(
    profile: str, baseline: str, values: Mapping[str, float], before: Mapping[str, float]
) -> str:
    """Break down a difference of bytes written by kind, in one sentence."""
    whole = values[WRITTEN] - before[WRITTEN]
    parts = sorted(
        ((values[kind] - before[kind], label) for kind, label in _LABELS.items()),
        key=lambda part: -abs(part[0]),
    )
    texts = [
        f"{label} {_signed(part)}"
        for part, label in parts
        if abs(part) >= _PART_WORTH_SAYING * abs(whole)
    ]
    return (
        f"{profile}: {human_bytes(abs(whole))} {'less' if whole < 0 else 'more'} than {baseline}:"
        f" {', '.join(texts)}"
    )


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{human_bytes(abs(value))}"


def _share(part: float, whole: float) -> str:
    """Format a share as 87 %, 3.2 % or <0.1 %: no more digits than a bar needs."""
    percent = 100 * part / whole if whole else 0.0
    if percent < 0.1:
        return "<0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %"
