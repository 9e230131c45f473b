"""Table of samples: one row for each cell × phase × disk × metric."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from fscost.results.metrics import METRICS, Combine, Metric

TOTAL = "total"
"""Phase that stands for all measured phases together; no workload may give a step this name."""


@dataclass(frozen=True)
class SampleRow:
    """One row. `disk` is empty for the sum over all disks and for metrics that have no disk."""

    cell: str
    profile: str
    repetition: int
    seed: int
    order: int
    phase: str
    measured: bool
    disk: str
    metric: str
    unit: str
    value: float


_ARROW_TYPES: Mapping[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    bool: pa.bool_(),
    float: pa.float64(),
}
SCHEMA = pa.schema(
    [pa.field(each.name, _ARROW_TYPES[each.type], nullable=False) for each in fields(SampleRow)]
)


def to_table(rows: Iterable[SampleRow]) -> pa.Table:
    """Convert rows to an Arrow table of `SCHEMA`."""
    found = list(rows)
    return pa.table(
        {name: [getattr(row, name) for row in found] for name in SCHEMA.names}, schema=SCHEMA
    )


def digest(table: pa.Table) -> str:
    """Compute the SHA-256 of the rows, independent of how a file stores them."""
    found = hashlib.sha256()
    for name in SCHEMA.names:
        found.update(json.dumps([name, table[name].to_pylist()]).encode())
    return found.hexdigest()


def with_totals(
    rows: Sequence[SampleRow], metrics: Mapping[str, Metric] = METRICS
) -> list[SampleRow]:
    """Complete the rows of one cell: add missing sums over disks, and a `total` row for each metric
    that has a total."""
    for row in rows:
        known = metrics.get(row.metric)
        # An emulated guest's times have their own unit (lab/base.py).
        if known is None or row.unit not in (known.unit, f"virtual_{known.unit}"):
            raise ValueError(
                f"metric {row.metric} in {row.unit} is not registered in results/metrics.py"
            )
    complete = [*rows, *_sums_over_disks(rows, metrics)]
    return [*complete, *_totals(complete, metrics)]


def _sums_over_disks(rows: Sequence[SampleRow], metrics: Mapping[str, Metric]) -> list[SampleRow]:
    present = {(row.phase, row.metric) for row in rows if not row.disk}
    parts: dict[tuple[str, str], list[SampleRow]] = defaultdict(list)
    for row in rows:
        if row.disk and metrics[row.metric].additive and (row.phase, row.metric) not in present:
            parts[row.phase, row.metric].append(row)
    return [
        replace(found[0], disk="", value=sum(row.value for row in found))
        for found in parts.values()
    ]


def _totals(rows: Sequence[SampleRow], metrics: Mapping[str, Metric]) -> list[SampleRow]:
    phases = list(dict.fromkeys(row.phase for row in rows if row.measured))
    series: dict[tuple[str, str], list[SampleRow]] = defaultdict(list)
    for row in rows:
        if row.measured:
            series[row.metric, row.disk].append(row)
    sums = {key: sum(row.value for row in found) for key, found in series.items()}
    totals = []
    for (name, disk), found in series.items():
        metric = metrics[name]
        if metric.combine is Combine.RATIO:
            below = sums.get((metric.denominator, disk), 0.0)
            value = sums.get((metric.numerator, disk), 0.0) / below if below else None
        else:
            value = _combined(metric.combine, found, phases)
        if value is not None:
            totals.append(replace(found[0], phase=TOTAL, value=value))
    return totals


def _combined(combine: Combine, found: Sequence[SampleRow], phases: Sequence[str]) -> float | None:
    values = [row.value for row in found]
    if combine is Combine.SUM:
        return sum(values)
    if combine is Combine.MAX:
        return max(values)
    if combine is Combine.LAST:
        return values[-1] if found[-1].phase == phases[-1] else None
    return values[0] if combine is Combine.ONLY and len(phases) == 1 else None
