"""A trace of another tool in words: how much was written, in which order, and where again."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fscost.analyze.traced import Traced, TracedDisk
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.units import human_bytes, human_count, human_seconds, human_share

NO_CONTENTS = (
    "a trace has no contents: it shows where, in which order and how often the host wrote, but not"
    " what. A recording of fscost shows that, too (`fscost compare -- COMMAND`)"
)
_HEADER = ("disk", "written", "requests", "in order", "again", "read", "discarded", "flushes")


def title(source: Path, found: Traced) -> str:
    """Return the headline."""
    requests = sum(disk.write_requests for disk in found.disks)
    written = human_bytes(sum(disk.write_bytes for disk in found.disks))
    span = f" in {human_seconds(found.duration_s)}" if found.duration_s else ""
    of = f"{source}: {found.format} trace; {written} written by {human_count(requests)} requests"
    return plain(f"{of}{span}")


def grids(found: Traced, top: int) -> list[Grid]:
    """Return the disks, most written first, and the writes by their length."""
    disks = sorted(found.disks, key=lambda disk: (-disk.write_bytes, disk.name))
    rows = [_row(disk) for disk in disks[:top]]
    if rest := disks[top:]:
        written = human_bytes(sum(disk.write_bytes for disk in rest))
        rows.append((f"({len(rest)} more)", written, *[NOTHING] * (len(_HEADER) - 2)))
    return [
        Grid("", _HEADER, rows),
        Grid(
            "",
            ("writes up to", "requests", "bytes", "share"),
            [
                (human_bytes(length), human_count(requests), human_bytes(size), human_share(share))
                for length, requests, size, share in _sizes(found.disks)
            ],
        ),
    ]


def findings(found: Traced) -> list[str]:
    """Return what follows from the numbers, most important first."""
    written = sum(disk.write_bytes for disk in found.disks)
    if not written:
        return ["Nothing is written."]
    return [f"- {line}" for line in (*_findings(found.disks, written), NO_CONTENTS)]


def json(found: Traced) -> dict[str, Any]:
    """Convert to the printed JSON form."""
    disks = [
        asdict(disk)
        | {
            "write_sizes": [
                {"up_to_bytes": length, "requests": requests, "bytes": size}
                for length, requests, size in disk.write_sizes
            ]
        }
        for disk in found.disks
    ]
    return {"format": found.format, "duration_s": found.duration_s, "disks": disks}


def _row(disk: TracedDisk) -> tuple[str, ...]:
    def share(size: int) -> str:
        return human_share(size / disk.write_bytes) if disk.write_bytes else NOTHING

    return (
        disk.name,
        human_bytes(disk.write_bytes),
        human_count(disk.write_requests),
        share(disk.sequential_write_bytes),
        or_nothing(disk.again_write_bytes, share),
        human_bytes(disk.read_bytes),
        human_bytes(disk.discard_bytes + disk.zero_bytes),
        human_count(disk.flushes),
    )


def _sizes(disks: Sequence[TracedDisk]) -> Iterator[tuple[int, int, int, float]]:
    total = sum(disk.write_bytes for disk in disks)
    by_length: dict[int, tuple[int, int]] = {}
    for disk in disks:
        for length, requests, size in disk.write_sizes:
            before = by_length.get(length, (0, 0))
            by_length[length] = (before[0] + requests, before[1] + size)
    for length, (requests, size) in sorted(by_length.items()):
        yield length, requests, size, size / total if total else 0.0


def _findings(disks: Sequence[TracedDisk], written: int) -> Iterator[str]:
    sequential = sum(disk.sequential_write_bytes for disk in disks) / written
    yield (
        f"{human_share(sequential)} of the bytes are in order: their writes begin where one of the"
        " last 16 writes ended. The rest can make a drive copy (`fscost wear TRACE --ssd MODEL`)"
    )
    known = [disk for disk in disks if disk.distinct_write_bytes is not None]
    of_known = sum(disk.write_bytes for disk in known)
    if again := sum(disk.again_write_bytes or 0 for disk in known):
        distinct = sum(disk.distinct_write_bytes or 0 for disk in known)
        touched = sum(disk.touched_write_bytes or 0 for disk in known)
        yield (
            f"{human_share(again / of_known)} of the bytes go to blocks of 4 KiB that the trace had"
            f" written before: {human_bytes(distinct)} in all, written {touched / distinct:.2f}"
            " times on average"
        )
    if len(known) < len(disks):
        yield "how much is written again is unknown: the trace writes to more than 4 TiB of blocks"
    flushes = sum(disk.flushes for disk in disks)
    if flushes:
        yield f"one flush for each {human_bytes(written / flushes)} written"
