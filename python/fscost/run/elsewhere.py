"""Cells that run a second time, on another machine of a cluster, to check that guests write the
same bytes on every machine."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from fscost.lab.base import CellResult
from fscost.results import TOTAL, CellRecord, RunResults
from fscost.run.record import rows

FACT = "second_run"
"""Cell fact: the `machine` that ran the cell a second time, and the counters that `differ`, each
with its phase, disk, and values of the `first` and the `second` run; or why that run `failed`."""
MOST_CELLS = 3
COUNTERS = (
    "device_write_bytes",
    "device_write_requests",
    "device_discard_bytes",
    "device_flushes",
    "program_write_bytes",
)
_Values = Mapping[tuple[str, str, str], float]


def chosen(results: RunResults) -> list[CellRecord]:
    """Return the cells to run again: the first of each of the first profiles, except of profiles
    that have been checked."""
    first: dict[str, CellRecord] = {}
    for cell in results.manifest.done:
        if FACT in cell.facts or cell.profile not in first:
            first[cell.profile] = cell
    of_profiles = [first[name] for name in results.manifest.profile_names if name in first]
    return [cell for cell in of_profiles[:MOST_CELLS] if cell.machine and FACT not in cell.facts]


def fact(results: RunResults, kept: CellRecord, second: CellResult, machine: str) -> dict[str, Any]:
    """Return the cell fact after the second run of a cell."""
    if second.status != "done":
        return {"machine": machine, "failed": second.because}
    before = results.samples.filter(pc.field("cell") == kept.cell).to_pylist()
    again = map(vars, rows(second.cell, second))
    return {"machine": machine, "differ": list(_differences(_values(before), _values(again)))}


def _values(samples: Iterable[Mapping[str, Any]]) -> _Values:
    return {
        (row["phase"], row["disk"], row["metric"]): row["value"]
        for row in samples
        if row["phase"] != TOTAL and row["metric"] in COUNTERS
    }


def _differences(before: _Values, after: _Values) -> Iterator[dict[str, Any]]:
    for key in dict.fromkeys((*before, *after)):
        first, second = before.get(key), after.get(key)
        if first != second:
            names = zip(("phase", "disk", "metric"), key, strict=True)
            yield {**dict(names), "first": first, "second": second}
