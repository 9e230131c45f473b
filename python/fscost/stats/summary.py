"""Summary of a table of samples: one row for each profile, phase and metric."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from fscost.stats.interval import Interval, interval, spread
from fscost.stats.ratio import MINIMUM_SIZE, Ratio, Verdict, ratio

Key = tuple[str, str, str, str]
"""Profile, phase, disk, metric."""
_READ = ("profile", "phase", "disk", "metric", "repetition", "value", "measured", "unit")


@dataclass(frozen=True)
class Row:
    """Summary of one metric of one phase over the repetitions of one profile.

    `low` and `high` bound the 95 % interval; None if there is no interval. `disk` is empty for the
    sum over all disks and for metrics that have no disk.

    `ratio_…` compare with the same phase of the baseline, paired by repetition. They are None for
    the baseline itself, or if there is no baseline.
    """

    profile: str
    phase: str
    measured: bool
    disk: str
    metric: str
    unit: str
    n: int
    median: float
    low: float | None
    high: float | None
    spread: float | None
    ratio_n: int | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: Verdict | None = None
    because: str = ""


def summarise(
    samples: pa.Table,
    baseline: str | None = None,
    minimum_size: float = MINIMUM_SIZE,
    *,
    by_disk: bool = False,
) -> list[Row]:
    """Return one row for each profile × phase × disk × metric, in order of first appearance.
    Without `by_disk`, rows of single disks are left out."""
    groups: dict[Key, dict[int, float]] = {}
    about: dict[Key, tuple[bool, str]] = {}
    chosen = samples if by_disk else samples.filter(pc.equal(samples["disk"], ""))
    # Columns, because `to_pylist` of a table takes ten times as long.
    columns = (chosen[name].to_pylist() for name in _READ)
    for profile, phase, disk, metric, *rest in zip(*columns, strict=True):
        key, (repetition, value, measured, unit) = (profile, phase, disk, metric), rest
        groups.setdefault(key, {})[repetition] = value
        about.setdefault(key, (measured, unit))
    return [_row(key, *about[key], groups, baseline, minimum_size) for key in groups]


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Convert the rows to an Arrow table for further processing."""
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMA)


def where(samples: pa.Table, metric: str, phase: str = "total") -> pa.Table:
    """Return the samples of one metric, summed over disks."""
    # Masks, because an expression imports pyarrow.dataset.
    for column, value in (("metric", metric), ("phase", phase), ("disk", "")):
        samples = samples.filter(pc.equal(samples[column], value))
    return samples


def by_repetition(
    samples: pa.Table, metric: str, phase: str = "total"
) -> dict[str, dict[int, float]]:
    """Return the values of one metric by profile and repetition."""
    chosen = where(samples, metric, phase).select(["profile", "repetition", "value"])
    values: dict[str, dict[int, float]] = {}
    for row in chosen.to_pylist():
        values.setdefault(row["profile"], {})[row["repetition"]] = row["value"]
    return values


def half_widths(samples: pa.Table, metric: str, phase: str = "total") -> dict[str, Interval]:
    """Compute the interval of one metric for each profile; the stopping rule uses these."""
    values = by_repetition(samples, metric, phase)
    return {profile: interval(list(found.values())) for profile, found in values.items()}


def _row(
    key: Key,
    measured: bool,
    unit: str,
    groups: Mapping[Key, Mapping[int, float]],
    baseline: str | None,
    minimum_size: float,
) -> Row:
    profile, phase, disk, metric = key
    values = list(groups[key].values())
    found = interval(values)
    against: dict[str, Any] = {}
    if baseline is not None and profile != baseline:
        against = _against(
            ratio(groups[key], groups.get((baseline, phase, disk, metric), {}), minimum_size)
        )
    return Row(
        profile,
        phase,
        measured,
        disk,
        metric,
        unit,
        **vars(found),
        spread=spread(values),
        **against,
    )


def _against(found: Ratio) -> dict[str, Any]:
    return {
        "ratio_n": found.n,
        "ratio": found.ratio,
        "ratio_low": found.low,
        "ratio_high": found.high,
        "verdict": found.verdict,
        "because": found.because,
    }


_TYPES = {
    str: pa.string(),
    Verdict: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
}


def _arrow_type(kind: Any) -> pa.DataType:
    """Return the type of a column whose values are of this kind, or missing."""
    known, *_ = get_args(kind) or (kind,)
    return _TYPES[known]


_SCHEMA = pa.schema([(column.name, _arrow_type(column.type)) for column in fields(Row)])
