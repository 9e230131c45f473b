"""Life of a device, from the wear of one run of a workload."""

from dataclasses import dataclass

DAYS_PER_YEAR = 365
SECONDS_PER_DAY = 86400


@dataclass(frozen=True)
class Life:
    """Runs of the workload until blocks have used up the program/erase cycles that they are rated
    for.

    `mean_runs`: if all blocks wore alike. `runs`: until the block that is erased most is worn out.
    Both None where the workload erases nothing.
    `host_write_bytes` is what the host has written by `runs` (TBW).
    """

    runs: float | None
    mean_runs: float | None
    host_write_bytes: float | None

    def years(self, runs_per_day: float | None) -> float | None:
        """Years at this rate; None without a rate or without wear."""
        if self.runs is None or not runs_per_day:
            return None
        return self.runs / runs_per_day / DAYS_PER_YEAR


def life(
    *,
    pe_cycles: int,
    nand_bytes: float,
    nand_write_bytes: float,
    host_write_bytes: float,
    mean_erases: float,
    max_erases: float,
    is_levelled: bool,
) -> Life:
    """Of a device at its real size. `nand_…` and `host_write_bytes` are of one run of the workload;
    the erases are those of the model.

    Without static levelling the most erased block stays as far ahead in proportion; with it, by as
    many erases (JESD218's wear-levelling factor is the first).
    """
    if nand_write_bytes <= 0:
        return Life(None, None, None)
    cycles_per_run = nand_write_bytes / nand_bytes
    mean = pe_cycles / cycles_per_run
    if mean_erases <= 0:
        first = mean
    elif is_levelled:
        first = max(pe_cycles - (max_erases - mean_erases), 0) / cycles_per_run
    else:
        first = mean * mean_erases / max(max_erases, mean_erases)
    return Life(first, mean, first * host_write_bytes)


def runs_per_day(seconds: float) -> float | None:
    """Runs per day back to back, each as long as recorded; None if the duration is unknown."""
    return SECONDS_PER_DAY / seconds if seconds > 0 else None
