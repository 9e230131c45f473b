"""Estimate of a run's time and space before it starts, and a check that the host has enough."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage

from fscost import files, host
from fscost.errors import HostError
from fscost.lab.base import Site
from fscost.run.spec import RunSpec

LEAST_MEMORY_BYTES = 512 << 20
_LEAST_DISK_BYTES = 256 << 20
"""Minimum space for tables, logs and the recording of a workload of unknown size."""


@dataclass(frozen=True)
class Estimate:
    """Estimated cells, time and space of a run. `host_bytes` is an upper bound (recordings are
    compressed), and None if the workload's size is unknown."""

    cells_min: int
    cells_max: int
    seconds_min: float
    seconds_max: float
    host_bytes: int | None


def estimate(spec: RunSpec, site: Site, profiles: int) -> Estimate:
    """Estimate a run of `profiles` profiles that can run on `site`."""
    rule = spec.stopping
    written = spec.workload.write_bytes_estimate
    cell_s = site.guess_s(written or 0) / min(site.side_by_side, profiles or 1)
    cap_s = max(rule.max_minutes * 60, profiles * cell_s)
    # Running cells have their recordings on disk, whether or not they are kept.
    running = min(site.side_by_side, profiles)
    kept = {"all": profiles * rule.max_repetitions, "one": profiles + running, "none": running}[
        spec.keep
    ]
    return Estimate(
        cells_min=profiles * rule.min_repetitions,
        cells_max=profiles * rule.max_repetitions,
        seconds_min=min(profiles * rule.min_repetitions * cell_s, cap_s),
        seconds_max=min(profiles * rule.max_repetitions * cell_s, cap_s),
        host_bytes=None if written is None else kept * written,
    )


def check_host(folder: Path, need: Estimate, keep: str = "one") -> None:
    """Refuse a run that would fill the disk or trigger the kernel's out-of-memory killer."""
    existing = host.existing(folder.absolute())
    disk = disk_usage(existing)
    if disk.total == 0:
        raise HostError(
            f"{existing} is on a file system that stores no files", "name another folder with --out"
        )
    wanted, reserve = max(need.host_bytes or 0, _LEAST_DISK_BYTES), reserve_bytes(disk.total)
    if disk.free < wanted + reserve:
        raise HostError(
            f"the run may need {_mib(wanted)} for recordings, and {existing} has {_mib(disk.free)}"
            f" free, of which {_mib(reserve)} are kept for other programs",
            "free some space, or name another folder with --out" + fewer_recordings(keep),
        )
    available = memory_available_bytes()
    if available is not None and available < LEAST_MEMORY_BYTES:
        raise HostError(
            f"only {_mib(available)} of memory is available; below {_mib(LEAST_MEMORY_BYTES)} a"
            " cell measures the host's swapping",
            "end other programs first",
        )
    if not os.access(existing, os.W_OK):
        raise HostError(f"{existing} cannot be written to", "name another folder with --out")


def reserve_bytes(size_bytes: int) -> int:
    """Space that a recording leaves free on a file system of this size
    (crates/recording/src/room.rs)."""
    part = size_bytes // 20
    return part if size_bytes < 4 << 30 else min(max(part, 1 << 30), 4 << 30)


def fewer_recordings(keep: str) -> str:
    """Hint to keep no recordings; empty if none are kept anyway."""
    return "" if keep == "none" else "; --keep none keeps no recordings"


def memory_available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """MemAvailable, from proc_meminfo(5)."""
    with suppress(OSError):
        if value := files.proc_field(meminfo, "MemAvailable"):
            return int(value.split()[0]) * 1024
    return None


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.0f} MiB"
