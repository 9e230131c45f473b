"""Difference in bytes between two profiles of a run, or between two runs of a profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscost.analyze import By, Group, Report, groups
from fscost.analyze.explain import incomplete
from fscost.view.grid import Grid, plain
from fscost.view.units import human_bytes, signed_bytes

_Row = tuple[str, int, int]
"""Name of a group, and its bytes in both reports."""


@dataclass(frozen=True)
class Difference:
    """Difference between two reports. `tables`: by grouping, one row for each group with the bytes
    of both; each table adds up to the whole. `notes`: whose recording is incomplete."""

    title: str
    notes: Sequence[str]
    grids: Sequence[Grid]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    findings: Sequence[str]


def difference(
    one: str, first: Report, other: str, second: Report, bys: Sequence[By], top: int
) -> Difference:
    """Compare two reports by each grouping: the increase or decrease from the first to the second.
    Groups after the first `top` are combined."""
    all_rows = {
        by: _rows(groups(first.explanation, by), groups(second.explanation, by), top) for by in bys
    }
    grids = [
        Grid("", (by.value, one, other, "difference"), _lines(rows, first, second), changes=(3,))
        for by, rows in all_rows.items()
    ]
    return Difference(
        plain(_title(one, first, other, second) + _largest(all_rows)),
        [
            plain(f"{name}: {told}")
            for name, report in ((one, first), (other, second))
            if (told := incomplete(report.explanation.end))
        ],
        grids,
        {
            by.value: [
                {"name": name, "first_write_bytes": mine, "second_write_bytes": its}
                for name, mine, its in rows
            ]
            for by, rows in all_rows.items()
        },
        [
            plain(f"{name}: {finding}")
            for name, report in ((one, first), (other, second))
            for finding in report.findings
        ],
    )


def names(runs: Sequence[Path]) -> list[str]:
    """Return the names of the runs' folders, or their whole paths if those names are the same."""
    found = [each.resolve().name for each in runs]
    return found if len(set(found)) == len(found) else [str(each) for each in runs]


def _rows(first: Sequence[Group], second: Sequence[Group], top: int) -> list[_Row]:
    before = {group.name: group.bytes for group in first}
    after = {group.name: group.bytes for group in second}
    names = sorted(
        before | after, key=lambda name: (-abs(after.get(name, 0) - before.get(name, 0)), name)
    )
    rows = [(name, before.get(name, 0), after.get(name, 0)) for name in names]
    if len(rows) > top:
        rest = rows[top:]
        rows = [
            *rows[:top],
            (f"({len(rest)} more)", sum(row[1] for row in rest), sum(row[2] for row in rest)),
        ]
    return rows


def _lines(rows: Sequence[_Row], first: Report, second: Report) -> list[list[str]]:
    whole = ("total", first.write_bytes, second.write_bytes)
    return [
        [name, *map(human_bytes, (mine, its)), signed_bytes(its - mine)]
        for name, mine, its in (*rows, whole)
    ]


def _largest(all_rows: Mapping[By, Sequence[_Row]]) -> str:
    """Name the largest change of each grouping, if there are several groupings."""
    if len(all_rows) < 2:
        return ""
    found = [
        f"{by.value} {rows[0][0]} {signed_bytes(rows[0][2] - rows[0][1])}"
        for by, rows in all_rows.items()
        if rows and rows[0][1] != rows[0][2]
    ]
    return f": {', '.join(found)}" if found else ""


def _title(one: str, first: Report, other: str, second: Report) -> str:
    whole = second.write_bytes - first.write_bytes
    sizes = f"{human_bytes(second.write_bytes)} against {human_bytes(first.write_bytes)}"
    title = (
        f"{other} wrote {human_bytes(abs(whole))} {'less' if whole < 0 else 'more'} than {one}"
        f" ({sizes})"
    )
    if not whole:
        title = f"{other} wrote as much as {one} ({human_bytes(second.write_bytes)})"
    return title
