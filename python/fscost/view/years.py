"""Life in years of the device of `--ssd`."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from fscost import stats
from fscost.results import METRICS, RunResults, SampleRow, to_table
from fscost.results.worn import DAYS_PER_YEAR, RUNS, YEARS, runs_per_day


def with_years(run: RunResults) -> RunResults:
    """Add the life in years, for runs back to back at the speed of the baseline, to a run that has
    the life in runs."""
    lives = [SampleRow(**row) for row in stats.where(run.samples, RUNS).to_pylist()]
    times = stats.where(run.samples, "wall_s")
    seconds = times.filter(pc.equal(times["profile"], run.manifest.baseline))["value"].to_pylist()
    rate = runs_per_day(stats.interval(seconds).median) if lives and seconds else None
    if rate is None:
        return run
    unit = METRICS[YEARS].unit
    years = [
        replace(row, metric=YEARS, unit=unit, value=row.value / rate / DAYS_PER_YEAR)
        for row in lives
    ]
    return replace(run, samples=pa.concat_tables([run.samples, to_table(years)]))
