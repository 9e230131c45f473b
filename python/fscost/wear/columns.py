"""Columns of a run's tables: NAND bytes and the life of a device."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fscost import results
from fscost.results import METRICS, TOTAL, CellRecord, RunResults, SampleRow
from fscost.wear.device import Device
from fscost.wear.life import DAYS_PER_YEAR, runs_per_day
from fscost.wear.measure import exact_nand_bytes, measure, roaming_nand_bytes, sources

NAND, RUNS, YEARS = "nand_write_bytes", "lifetime_runs", "lifetime_years"
EXACT, ROAMING = "exact_nand_write_bytes", "roaming_nand_write_bytes"

_ALL = [NAND, EXACT, ROAMING, RUNS, YEARS]


def worn(recording: Path, measured: Sequence[str], device: Device) -> dict[str, float]:
    """Return, by metric, the NAND bytes of all disks, those of exact and of roaming repetitions if
    they differ, and the runs of the workload until the first disk is worn out."""
    found = [
        measure(source, device)
        for source in sources(recording, is_explained=False, measured=measured)
    ]
    runs = [each.life.runs for each in found if each.life.runs is not None]
    ends = {EXACT: exact_nand_bytes(found), ROAMING: roaming_nand_bytes(found)}
    return (
        {NAND: sum(each.nand_write_bytes for each in found)}
        | {metric: value for metric, value in ends.items() if value is not None}
        | ({RUNS: min(runs)} if runs else {})
    )


def replayed(run: RunResults, device: Device) -> RunResults:
    """Add these columns to every cell with a kept recording; replace existing ones."""
    rows = []
    for cell in run.manifest.done:
        path = results.kept_recording(run.folder, cell)
        if path is not None:
            phases = _measured(run.samples, cell)
            rows += [
                _row(cell, metric, value) for metric, value in worn(path, phases, device).items()
            ]
    others = run.samples.filter(
        pc.invert(pc.is_in(run.samples["metric"], value_set=pa.array(_ALL)))
    )
    return replace(run, samples=pa.concat_tables([others, results.to_table(rows)]))


def with_years(run: RunResults) -> RunResults:
    """Add the life in years, for runs back to back at the speed of the baseline."""
    chosen = run.samples.filter((pc.field("phase") == TOTAL) & (pc.field("disk") == "")).to_pylist()
    seconds = [
        row["value"]
        for row in chosen
        if row["metric"] == "wall_s" and row["profile"] == run.manifest.baseline
    ]
    rate = runs_per_day(float(np.median(seconds))) if seconds else None
    if rate is None:
        return run
    about = {"metric": YEARS, "unit": METRICS[YEARS].unit}
    rows = [
        SampleRow(**{**row, **about, "value": row["value"] / rate / DAYS_PER_YEAR})
        for row in chosen
        if row["metric"] == RUNS
    ]
    if not rows:
        return run
    return replace(run, samples=pa.concat_tables([run.samples, results.to_table(rows)]))


def _measured(samples: pa.Table, cell: CellRecord) -> list[str]:
    mine = samples.filter(
        (pc.field("cell") == cell.cell) & pc.field("measured") & (pc.field("phase") != TOTAL)
    )
    return list(dict.fromkeys(mine["phase"].to_pylist()))


def _row(cell: CellRecord, metric: str, value: float) -> SampleRow:
    return SampleRow(
        cell.cell,
        cell.profile,
        cell.repetition,
        cell.seed,
        cell.order,
        TOTAL,
        True,
        "",
        metric,
        METRICS[metric].unit,
        value,
    )
