"""Metrics of a device that the writes of a run wear (`fscost.wear`), and rates of its life."""

NAND, RUNS, YEARS = "nand_write_bytes", "lifetime_runs", "lifetime_years"
EXACT, ROAMING = "exact_nand_write_bytes", "roaming_nand_write_bytes"
DAYS_PER_YEAR = 365
_SECONDS_PER_DAY = 86400


def runs_per_day(seconds: float) -> float | None:
    """Runs per day back to back, each as long as recorded; None if the duration is unknown."""
    return _SECONDS_PER_DAY / seconds if seconds > 0 else None
