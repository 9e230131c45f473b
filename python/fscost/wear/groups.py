"""NAND bytes of a recording by the groups of `fscost explain`, and the life of the device."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost import analyze
from fscost.analyze.groups import NO_FILE
from fscost.errors import InputError
from fscost.wear.device import Device
from fscost.wear.measure import (
    COLD,
    DISCARDS,
    NOTHING,
    REST,
    By,
    Source,
    Wear,
    exact_nand_bytes,
    measure,
    roaming_nand_bytes,
)

SPECIAL = (REST, DISCARDS, COLD)
"""Groups of charges that do not occur in an explanation."""
_OF = {
    analyze.By.STRUCTURE: By.STRUCTURE,
    analyze.By.CAUSE: By.CAUSE,
    analyze.By.FILE: By.PATH,
    analyze.By.PHASE: By.STEP,
}


@dataclass(frozen=True)
class GroupWear:
    """Wear of a recording's disks, each on a device of its own.

    `by_group` holds all NAND bytes, by the owner of the programmed data. `lifetime_runs` and
    `lifetime_years` are those of the disk that is worn out first.
    """

    device: str
    host_write_bytes: int
    nand_write_bytes: float
    by_group: Mapping[str, float]
    lifetime_runs: float | None
    lifetime_years: float | None
    runs_per_day: float | None
    exact_nand_write_bytes: float | None = None
    """NAND bytes if repetitions wrote the same addresses; None if that makes no difference."""
    roaming_nand_write_bytes: float | None = None
    """NAND bytes if repetitions roamed over the disk; None if that makes no difference."""

    def others(self, names: Sequence[str], *, is_special: bool) -> Iterator[tuple[str, float]]:
        """Yield the groups with NAND bytes that are not among these names; with `is_special`, only
        those that do not occur in an explanation."""
        for name, size in self.by_group.items():
            if size >= 1 and name not in names and (name in SPECIAL or not is_special):
                yield name, size

    def json(self) -> dict[str, Any]:
        """Return the JSON fields that concern the whole recording."""
        return {
            "ssd": self.device,
            "nand_write_bytes": self.nand_write_bytes,
            "exact_nand_write_bytes": self.exact_nand_write_bytes,
            "roaming_nand_write_bytes": self.roaming_nand_write_bytes,
            "lifetime_runs": self.lifetime_runs,
            "lifetime_years": self.lifetime_years,
            "runs_per_day": self.runs_per_day,
        }


def grouping(by: analyze.By) -> By:
    """Return the grouping of charges with the same groups; InputError if there is none."""
    if by not in _OF:
        names = ", ".join(each.value for each in _OF)
        raise InputError(f"--ssd cannot be combined with --by {by.value}", f"choose --by {names}")
    return _OF[by]


def replayed_disks(sources: Sequence[Source], device: Device, by: analyze.By) -> dict[str, Wear]:
    """Compute the wear of each disk, charged to groups."""
    chosen = grouping(by)
    return {each.disk: measure(each, device, by=chosen) for each in sources}


def grouped(disks: Mapping[str, Wear], device: Device, rate: float | None) -> GroupWear:
    """Sum the wear over disks, at `rate` runs per day."""
    by_group: defaultdict[str, float] = defaultdict(float)
    for wear in disks.values():
        for charge in wear.charges:
            name = NO_FILE if charge.name == NOTHING else charge.name
            by_group[name] += charge.nand_write_bytes
    first = min(
        (wear.life for wear in disks.values() if wear.life.runs is not None),
        key=lambda life: life.runs or 0.0,
        default=None,
    )
    return GroupWear(
        device=device.name,
        host_write_bytes=sum(wear.host_write_bytes for wear in disks.values()),
        nand_write_bytes=sum(wear.nand_write_bytes for wear in disks.values()),
        by_group=dict(by_group),
        lifetime_runs=None if first is None else first.runs,
        lifetime_years=None if first is None else first.years(rate),
        runs_per_day=rate,
        exact_nand_write_bytes=exact_nand_bytes(disks.values()),
        roaming_nand_write_bytes=roaming_nand_bytes(disks.values()),
    )
