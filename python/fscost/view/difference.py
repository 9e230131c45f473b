"""Difference between two profiles in bytes, structure by structure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost.analyze import Report
from fscost.view.grid import Grid, plain
from fscost.view.units import human_bytes, signed_bytes


@dataclass(frozen=True)
class Difference:
    """Difference between two profiles. `rows`: one for each group, with the bytes of both profiles
    and their difference; they add up to the whole."""

    title: str
    grid: Grid
    rows: Sequence[Mapping[str, Any]]
    findings: Sequence[str]


def difference(one: str, first: Report, other: str, second: Report, top: int) -> Difference:
    """Compare two reports that list all groups, by the same grouping: the increase or decrease from
    the first to the second. Groups after the first `top` are combined."""
    whole = second.write_bytes - first.write_bytes
    before = {group.name: group.bytes for group in first.groups}
    after = {group.name: group.bytes for group in second.groups}
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
    lines = [
        [name, *map(human_bytes, (mine, its)), signed_bytes(its - mine)] for name, mine, its in rows
    ]
    lines.append(
        [
            "total",
            human_bytes(first.write_bytes),
            human_bytes(second.write_bytes),
            signed_bytes(whole),
        ]
    )
    sizes = f"{human_bytes(second.write_bytes)} against {human_bytes(first.write_bytes)}"
    title = (
        f"{other} wrote {human_bytes(abs(whole))} {'less' if whole < 0 else 'more'} than {one}"
        f" ({sizes})"
    )
    if not whole:
        title = f"{other} wrote as much as {one} ({human_bytes(second.write_bytes)})"
    return Difference(
        plain(title),
        Grid("", (first.by.value, one, other, "difference"), lines, changes=(3,)),
        [
            {"name": name, "first_write_bytes": mine, "second_write_bytes": its}
            for name, mine, its in rows
        ],
        [
            plain(f"{name}: {finding}")
            for name, report in ((one, first), (other, second))
            for finding in report.findings
        ],
    )
