"""Life of a device, from the wear of one run of a workload."""

from dataclasses import dataclass

from fscost.results.worn import DAYS_PER_YEAR


@dataclass(frozen=True)
class Life:
    """Runs of the workload until blocks have used up their rated program/erase cycles.

    `mean_runs`: if all blocks wore equally. `runs`: until the most erased block is worn out. Both
    are None if the workload erases nothing. `host_write_bytes` is the number of bytes that the host
    has written by then (TBW).
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
    erased_bytes: float,
    host_write_bytes: float,
    mean_erases: float,
    max_erases: float,
    is_levelled: bool,
) -> Life:
    """Compute the life of a device at its real size. `nand_write_bytes`, `erased_bytes` and
    `host_write_bytes` are those of one run of the workload; the erases are those of the model.

    Erases wear, also those of blocks that were programmed only in part: a merge of log blocks
    erases two blocks for one that it programs. Blocks that the model has programmed and not yet
    erased will be, so the bytes programmed are the least.

    Without static wear levelling, the lead of the most erased block over the mean stays the same in
    proportion; with it, the lead stays the same in erases (the former is JESD218's wear-levelling
    factor).
    """
    if nand_write_bytes <= 0:
        return Life(None, None, None)
    cycles_per_run = max(nand_write_bytes, erased_bytes) / nand_bytes
    mean = pe_cycles / cycles_per_run
    if mean_erases <= 0:
        first = mean
    elif is_levelled:
        first = max(pe_cycles - (max_erases - mean_erases), 0) / cycles_per_run
    else:
        first = mean * mean_erases / max(max_erases, mean_erases)
    return Life(first, mean, first * host_write_bytes)
