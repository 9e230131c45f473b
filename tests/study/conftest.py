"""Studies in the fake lab, with numbers that a test chooses."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fscost import study
from fscost.lab.fake import FakeLab
from fscost.results import RunResults, to_table, with_totals
from fscost.results.table import SampleRow
from fscost.run import execute
from fscost.study import Report, Study

Number = Callable[[str, str, str, int], float | None]
"""Short name of a profile, phase, metric, repetition → the sample; None: there is none."""
MIB = 1 << 20
METRICS = {"device_write_bytes": "bytes", "metadata_used_bytes": "bytes", "wall_s": "s", "pause_s_p99": "s", "pause_s_max": "s"}


def run_of(found: Study, folder: Path, number: Number, repetitions: int = 3, lab: FakeLab | None = None) -> RunResults:
    """A run of the study whose samples are `number`'s."""
    small = {"files": "4"}  # made on the host, and never read by the fake lab
    spec = study.plan(
        found, study.scale_of(found, "small"), folder, seed=5, options=small, min_repetitions=repetitions, max_repetitions=repetitions
    )
    results = execute(spec, lab or FakeLab(), lock=f"fscost.test.{os.getpid()}.{folder}").results
    shorts = {profile.name: short for short, profile in found.profiles.items()}
    rows = []
    for cell in results.manifest.done:
        mine = []
        for step in spec.workload.steps:
            for metric, unit in METRICS.items():
                value = number(shorts[cell.profile], step.name, metric, cell.repetition)
                if value is not None:
                    mine.append(
                        SampleRow(
                            cell.cell,
                            cell.profile,
                            cell.repetition,
                            cell.seed,
                            cell.order,
                            step.name,
                            step.measured,
                            "",
                            metric,
                            unit,
                            float(value),
                        )
                    )
        rows += with_totals(mine)
    # What is another each time has no place in a golden file.
    manifest = replace(results.manifest, elapsed_s=90.0, started_utc="2026-01-02T03:04:05Z", fscost_version="0.0")
    return RunResults(Path("fscost-runs/golden"), manifest, to_table(rows))


def published_again(found: Study, spread: float = 0.002) -> Number:
    """The published figures as if they had been measured here, with a little noise that differs by repetition and profile."""
    by_short = {(ref.profile, ref.phase, ref.metric): value for ref, value in found.published.values.items()}

    def number(short: str, phase: str, metric: str, repetition: int) -> float | None:
        value = by_short.get((short, phase, metric))
        return None if value is None else value * (1 + spread * ((repetition * 7 + len(short) + len(phase)) % 3 - 1))

    return number


@pytest.fixture
def reported(tmp_path: Path) -> Callable[..., Report]:
    """The report of a study on such a run."""

    def report(name: str, number: Number | None = None, repetitions: int = 3, lab: FakeLab | None = None) -> Report:
        found = study.load(name)
        return study.report(
            found, run_of(found, tmp_path / f"run{len(list(tmp_path.iterdir()))}", number or published_again(found), repetitions, lab)
        )

    return report
