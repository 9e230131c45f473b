"""The only check of promise 1: the bytes of a recording are exactly the bytes that the kernel
counted, and exactly the bytes that are explained."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fscost.capture import RecordedInterval


@dataclass(frozen=True)
class KernelInterval:
    """Kernel counters of each disk over one interval."""

    name: str
    disks: Mapping[str, Mapping[str, int]]


def unrecorded(recorded: Sequence[RecordedInterval], kernel: Sequence[KernelInterval]) -> list[str]:
    """List the differences between recording and kernel, one sentence each, with both numbers.

    The recording has two more intervals. Requests before the first mark (udev reads new block
    devices) count in the first interval, as in the agent. Reads after the mark `end` are allowed; a
    byte changed there would belong to no interval.
    """
    names = [interval.name for interval in recorded]
    expected = ["before", *(interval.name for interval in kernel), "end"]
    if names != expected:
        return [f"the recording's intervals are {names}, the kernel's {expected}"]
    before, first, *others, after = recorded
    recorded = [_joined(before, first), *others]
    stray = {disk: _changed_bytes(totals) for disk, totals in after.disks.items()}
    found = [
        f"disk {disk}: {count} bytes changed after the end of the last interval"
        for disk, count in stray.items()
        if count
    ]
    for ours, theirs in zip(recorded, kernel, strict=True):
        if ours.disks.keys() != theirs.disks.keys():
            found.append(
                f"{ours.name}: the recording has disks {sorted(ours.disks)}, the kernel"
                f" {sorted(theirs.disks)}"
            )
            continue
        for disk, counters in theirs.disks.items():
            differences = _disk_differences(ours.disks[disk], counters)
            found += [f"{ours.name}, disk {disk}: {text}" for text in differences]
    return found


def _joined(before: RecordedInterval, first: RecordedInterval) -> RecordedInterval:
    disks = {
        disk: {name: count + before.disks[disk][name] for name, count in totals.items()}
        for disk, totals in first.disks.items()
    }
    return RecordedInterval(first.name, before.begin_ns, first.end_ns, disks)


def _changed_bytes(recorded: Mapping[str, int]) -> int:
    return sum(recorded[f"{kind}_bytes"] for kind in ("write", "zero", "punch", "discard"))


def _disk_differences(recorded: Mapping[str, int], kernel: Mapping[str, int]) -> Iterator[str]:
    if recorded["read_bytes"] != kernel["read_bytes"]:
        yield (
            f"{recorded['read_bytes']} bytes read in the recording, {kernel['read_bytes']} by the"
            " kernel's counter"
        )
    # A loop device sends discards and write-zeroes that may unmap as the same hole punch, so only
    # their sum can be compared (drivers/block/loop.c, lo_fallocate). The kernel counts write-zeroes
    # as written.
    written = recorded["write_bytes"] + recorded["zero_bytes"]
    changed = _changed_bytes(recorded)
    counted = kernel["write_bytes"] + kernel["discard_bytes"]
    if changed != counted:
        yield (
            f"{changed} bytes written, zeroed and discarded in the recording, {counted} by the"
            " kernel's counters"
        )
    elif not written <= kernel["write_bytes"] <= written + recorded["punch_bytes"]:
        yield (
            f"{written} bytes written and {recorded['punch_bytes']} punched in the recording cannot"
            f" add up to {kernel['write_bytes']} written by the kernel's counter"
        )


def unexplained(
    phases: Mapping[tuple[str, str], tuple[float, float]],
) -> list[str]:
    """List the differences between explained and counted bytes, one sentence each, with both
    numbers. `phases` holds both numbers by phase and disk; the disk name is empty for all disks
    together."""
    return [
        f"{phase}{f', disk {disk}' if disk else ''}: {explained:.0f} bytes explained, {counted:.0f}"
        " written by the kernel's counter"
        for (phase, disk), (explained, counted) in phases.items()
        if explained != counted
    ]
