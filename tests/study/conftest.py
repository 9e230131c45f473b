"""Runs of studies with numbers chosen by a test."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fscost import matrix, profile, study
from fscost.matrix import Cell
from fscost.results import CellRecord, Manifest, RunResults, Skipped, to_table, with_totals
from fscost.results.table import SampleRow
from fscost.run.spec import plain
from fscost.study import Report, Study
from fscost.workload import Workload

Number = Callable[[str, str, str, int], float | None]
"""Function from short profile name, phase, metric and repetition to the sample, or None if there is
none."""
METRICS = {
    "device_write_bytes": "bytes",
    "journal_write_bytes": "bytes",
    "atime_write_bytes": "bytes",
    "metadata_used_bytes": "bytes",
    "first_write_bytes": "bytes",
    "space_used_bytes": "bytes",
    "cpu_user_s": "s",
    "cpu_system_s": "s",
    "cpu_kernel_threads_s": "s",
    "wall_s": "s",
    "pause_s_p99": "s",
    "pause_s_max": "s",
    "modelled_elapsed_s": "s",
    "modelled_s": "s",
    "modelled_least_s": "s",
}


def run_of(
    found: Study,
    number: Number | Mapping[str, Number],
    repetitions: int = 3,
    skip: Mapping[str, str] | None = None,
    time_unit: str = "s",
) -> RunResults:
    """Return a run of the study with samples from `number`; with several kernels, each kernel has
    its own. `skip` maps a short name to the reason."""
    numbers = number if isinstance(number, Mapping) else {"": number}
    kernels = [kernel for kernel in numbers if kernel]
    units = {metric: time_unit if unit == "s" else unit for metric, unit in METRICS.items()}
    spec = study.plan(
        found, study.scale_of(found, "small"), Path("fscost-runs/golden"), seed=5, kernels=kernels
    )
    skipped = {found.profiles[short].name: because for short, because in (skip or {}).items()}
    shorts = {
        each.name: (short, each.kernel)
        for short, one in found.profiles.items()
        for each in profile.on_kernels(one, kernels)
    }
    cells, rows = [], []
    for _, repetition in zip(
        range(repetitions),
        matrix.repetitions(spec.profiles, spec.workload, spec.seed),
        strict=False,
    ):
        for cell in repetition:
            if cell.profile.name in skipped:
                continue
            cells.append(
                CellRecord(
                    cell.id,
                    cell.profile.name,
                    cell.repetition,
                    cell.seed,
                    cell.order,
                    "done",
                    1.5,
                    *[""] * 4,
                    {},
                )
            )
            short, kernel = shorts[cell.profile.name]
            rows += _samples_of(cell, spec.workload, short, numbers[kernel], units)
    manifest = Manifest(
        name=spec.name,
        fscost_version="0.0",
        command_line=[],
        started_utc="2026-01-02T03:04:05Z",
        lab="fake",
        environment={
            "kernel": {"release": "6.1.0-fake"},
            "disk_server": "fake disk",
            "recordings_on": {"type": "tmpfs"},
        },
        profiles=[plain(each) for each in spec.profiles],
        workload=plain(spec.workload),
        options=spec.options,
        stopping=plain(spec.stopping),
        seed=spec.seed,
        baseline=spec.baseline,
        request=dict(spec.request),
        state="finished",
        stopped_because="enough",
        elapsed_s=90.0,
        skipped=[Skipped(f"{name}.0", name, because) for name, because in skipped.items()],
        cells=cells,
    )
    return RunResults(spec.folder, manifest, to_table(rows))


def _samples_of(
    cell: Cell, workload: Workload, short: str, number: Number, units: Mapping[str, str]
) -> list[SampleRow]:
    """Return the samples of all steps of a cell, with totals."""
    rows = []
    for step in workload.steps:
        about = (
            cell.id,
            cell.profile.name,
            cell.repetition,
            cell.seed,
            cell.order,
            step.name,
            step.measured,
        )
        for metric, unit in units.items():
            value = number(short, step.name, metric, cell.repetition)
            if value is not None:
                rows.append(SampleRow(*about, "", metric, unit, float(value)))
                # This sample is of one disk of two, not of the whole.
                rows.append(SampleRow(*about, "journal", metric, unit, float(value) / 7))
    return with_totals(rows)


def published_again(found: Study, spread: float = 0.002) -> Number:
    """Return the published figures as if they had been measured here, with a little noise that
    differs by repetition and profile."""
    by_short = {
        (ref.profile, ref.phase, ref.metric): value for ref, value in found.published.values.items()
    }

    def number(short: str, phase: str, metric: str, repetition: int) -> float | None:
        metric = "modelled_s" if metric == "modelled_least_s" else metric
        value = by_short.get((short, phase, metric))
        return (
            None
            if value is None
            else value * (1 + spread * ((repetition * 7 + len(short) + len(phase)) % 3 - 1))
        )

    return number


@pytest.fixture
def reported() -> Callable[..., Report]:
    """Return the report of a study on such a run."""

    def report(
        name: str,
        number: Number | Mapping[str, Number] | None = None,
        repetitions: int = 3,
        skip: Mapping[str, str] | None = None,
        time_unit: str = "s",
    ) -> Report:
        found = study.load(name)
        return study.report(
            found, run_of(found, number or published_again(found), repetitions, skip, time_unit)
        )

    return report
