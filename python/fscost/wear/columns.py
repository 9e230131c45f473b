"""Columns of a run's tables: NAND bytes and the life of a device."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fscost import capture, results
from fscost.analyze.explain import incomplete
from fscost.errors import InputError
from fscost.results import METRICS, TOTAL, CellRecord, RunResults, SampleRow
from fscost.results.worn import EXACT, NAND, ROAMING, RUNS, YEARS
from fscost.wear.device import Device
from fscost.wear.measure import exact_nand_bytes, measure, roaming_nand_bytes, sources

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


def unreplayed(run: RunResults) -> list[str]:
    """Return notes on profiles without a recording to replay, and on recordings that are
    incomplete. InputError if the run has no recording at all."""
    found = {cell.cell: results.kept_recording(run.folder, cell) for cell in run.manifest.done}
    with_one = {cell.profile for cell in run.manifest.done if found[cell.cell]}
    if not with_one:
        raise InputError(
            f"--ssd needs recordings, and {run.folder} kept none",
            results.how_to_fetch(run.manifest.cells)
            or "make the run again with --keep one, or drop --ssd",
        )
    without = [name for name in run.manifest.profile_names if name not in with_one]
    notes = [f"not replayed: {', '.join(without)}, because no recording is kept"] if without else []
    for cell in run.manifest.done:
        path = found[cell.cell]
        told = "" if path is None else incomplete(capture.info(path)["end"], "replayed")
        notes += [f"{cell.profile}: {told}"] if told else []
    return [f"{run.folder}: {note}" for note in notes]


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
    request = {**run.manifest.request, "ssd": device.name}
    return replace(
        run,
        manifest=replace(run.manifest, request=request),
        samples=pa.concat_tables([others, results.to_table(rows)]),
    )


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
