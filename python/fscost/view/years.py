"""Life in years of the device of `--ssd`."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from fscost import stats
from fscost.results import METRICS, RunResults, SampleRow, to_table
from fscost.results.worn import DAYS_PER_YEAR, RUNS, YEARS, runs_per_day


def with_years(run: RunResults, speed_of: RunResults | None = None) -> RunResults:
    """Add the life in years, for runs back to back at the speed of the baseline, or of that of
    another run, to a run that has the life in runs."""
    lives = [SampleRow(**row) for row in stats.where(run.samples, RUNS).to_pylist()]
    rate = _baseline_rate(speed_of or run) if lives else None
    if rate is None:
        return run
    unit = METRICS[YEARS].unit
    years = [
        replace(row, metric=YEARS, unit=unit, value=row.value / rate / DAYS_PER_YEAR)
        for row in lives
    ]
    return replace(run, samples=pa.concat_tables([run.samples, to_table(years)]))


def _baseline_rate(run: RunResults) -> float | None:
    """Return the runs per day of the baseline back to back; None if no time was measured."""
    times = stats.where(run.samples, "wall_s")
    seconds = times.filter(pc.equal(times["profile"], run.manifest.baseline))["value"].to_pylist()
    return runs_per_day(stats.interval(seconds).median) if seconds else None
