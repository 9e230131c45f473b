"""Modelled busy time of recorded disks, or of the members of an array that a disk represents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscost import capture
from fscost.errors import InputError
from fscost.wear.array import Shape
from fscost.wear.device import Device
from fscost.wear.measure import Source

TIMING = ("read_us", "program_us", "erase_us")


@dataclass(frozen=True)
class IntervalTimes:
    """Times of one interval. `elapsed_s` is the time of a closed loop: the program waits for reads
    and flushes, and takes no time itself.

    `members` hold, by name: busy_s, nand_write_bytes, erased_blocks, and the requests and bytes of
    reads, prereads, writes (redundant_write_bytes of them parity or copies) and discards.
    """

    name: str
    elapsed_s: float
    members: Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class Times:
    """Times of a recording. `rows`: number of 4 KiB rows of a parity array that were written full,
    from the cache, by reconstruction, and by read-modify-write."""

    intervals: Sequence[IntervalTimes]
    rows: tuple[int, int, int, int]

    def of(self, phases: Sequence[str]) -> IntervalTimes:
        """Sum the times of these intervals."""
        chosen = [each for each in self.intervals if each.name in phases]
        members: list[dict[str, float]] = [
            dict.fromkeys(first, 0) for first in self.intervals[0].members
        ]
        for interval in chosen:
            for total, member in zip(members, interval.members, strict=True):
                for name, value in member.items():
                    total[name] += value
        return IntervalTimes("total", sum(each.elapsed_s for each in chosen), members)


@dataclass(frozen=True)
class ArrayLoad:
    """Load of each member in the measured phases; `array_write_bytes` are bytes written to the
    array."""

    shape: Shape
    array_write_bytes: int
    measured: IntervalTimes
    rows: tuple[int, int, int, int]

    @property
    def amplification(self) -> float | None:
        """Bytes written to the members ÷ bytes written to the array."""
        written = sum(each["write_bytes"] for each in self.measured.members)
        return written / self.array_write_bytes if self.array_write_bytes else None

    def utilisation(self, member: int) -> float | None:
        """`%util` of `iostat -x` ÷ 100, as an upper bound; None if the device has no timing."""
        elapsed_s = self.measured.elapsed_s
        return self.measured.members[member]["busy_s"] / elapsed_s if elapsed_s else None


def array_load(source: Source, device: Device, seed: int = 1) -> ArrayLoad:
    """Compute the load of the array that has `source` as a member."""
    assert source.array is not None, "members() makes such sources"
    found = times(source.recording, device, (source.index, source.array), seed)
    disk = capture.info(source.recording)["disks"][source.index]["name"]
    intervals = [
        each.disks[disk]
        for each in capture.intervals(source.recording)
        if each.name in source.measured
    ]
    written = sum(each["write_bytes"] + each["zero_bytes"] for each in intervals)
    return ArrayLoad(source.array, written, found.of(source.measured), found.rows)


def has_timing(device: Device) -> bool:
    """True if the device has NAND timings."""
    return all(device.values[name] for name in TIMING)


def times(
    recording: Path, device: Device, array: tuple[int, Shape] | None = None, seed: int = 1
) -> Times:
    """Replay a recording once on full devices, without TRIM. `array`: the disk's index and the
    array that it represents."""
    native: tuple[int, dict[str, Any]] | None = (
        None if array is None else (array[0], array[1].native())
    )
    with capture.opened(recording) as opened:
        try:
            found = opened.times(device.native(seed), native)
        except ValueError as error:
            raise InputError(
                f"{device.origin or device.name}: {error}", "see docs/wear.md, Devices and Arrays"
            ) from None
    return Times([IntervalTimes(**each) for each in found["intervals"]], found["rows"])
