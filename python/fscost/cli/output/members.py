"""Output of the load of an array's members: for a terminal, as Markdown and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fscost.view.grid import Grid, or_nothing, plain
from fscost.view.units import human_bytes, human_share
from fscost.wear import ArrayLoad, Shape

_FS_BLOCK_BYTES = 4096
_ROWS = ("full", "cached", "reconstruct", "read_modify_write")


@dataclass(frozen=True)
class Loaded:
    """Load of a profile's array. `has_timing` is True if the device model has NAND timings."""

    profile: str
    load: ArrayLoad
    has_timing: bool


def grid(loads: Sequence[Loaded]) -> Grid:
    """Return a table with a row for each member."""
    lines = []
    for each in loads:
        for number, member in enumerate(each.load.measured.members):
            used = each.load.utilisation(number) if each.has_timing else None
            lines.append(
                [
                    plain(f"{each.profile} (m{number})" if each.profile else f"m{number}"),
                    human_bytes(member["write_bytes"]),
                    f"{member['write_requests']:,.0f}",
                    human_bytes(member["redundant_write_bytes"]),
                    human_bytes(member["read_bytes"]),
                    human_bytes(member["preread_bytes"]),
                    or_nothing(used, human_share),
                ]
            )
    header = ("member", "written", "writes", "redundant", "read", "read for parity", "util")
    return Grid("Load of each member", header, lines)


def notes(loads: Sequence[Loaded]) -> Iterator[str]:
    """Yield the cost of each array, the assumptions, and the alignment that a file system needs."""
    if not loads:
        return
    for each in loads:
        load, name = each.load, f"{each.profile}: " if each.profile else ""
        factor = or_nothing(load.amplification, "{:.3f}".format)
        rows = ""
        if load.shape.has_parity:
            full, cached, reconstruct, modify = load.rows
            rows = (
                f" Rows of 4 KiB, all phases: {full:,} full, {cached:,} from the cache,"
                f" {reconstruct:,} reconstructed, {modify:,} modified."
            )
        yield plain(
            f"{name}members receive {factor} bytes for each byte written to the array.{rows}"
        )
    shape = loads[0].load.shape
    if shape.has_parity:
        yield (
            f"Writes within {shape.batch_ms:g} ms of each other, up to a flush, fill rows together"
            f" (batch_ms); {shape.cached_stripes} stripes are cached."
        )
    if any(each.has_timing for each in loads):
        yield (
            "util: busy ÷ elapsed, as in iostat -x, if the program itself took no time: an upper"
            " bound."
        )
    if shape.chunk_bytes:
        yield alignment(shape)


def alignment(shape: Shape) -> str:
    """Return the mkfs options that align a file system to the array's chunks."""
    chunk_kib, wide = shape.chunk_bytes >> 10, shape.stripe_members
    stride = shape.chunk_bytes // _FS_BLOCK_BYTES
    full = (
        f" Writes of whole rows ({human_bytes(shape.chunk_bytes * wide)}) read nothing."
        if shape.has_parity
        else ""
    )
    return (
        f"Aligned to chunks of {human_bytes(shape.chunk_bytes)}: mkfs.ext4 -E"
        f" stride={stride},stripe_width={stride * wide}; mkfs.xfs -d"
        f" su={chunk_kib}k,sw={wide}.{full}"
    )


def values(loaded: Loaded) -> dict[str, Any]:
    """Return an array's load for JSON."""
    load, shape = loaded.load, loaded.load.shape
    members = [
        {**member, "utilisation": load.utilisation(number) if loaded.has_timing else None}
        for number, member in enumerate(load.measured.members)
    ]
    return {
        "profile": loaded.profile,
        "level": shape.level,
        "chunk_bytes": shape.chunk_bytes,
        "array_write_bytes": load.array_write_bytes,
        "amplification": load.amplification,
        "elapsed_s": load.measured.elapsed_s if loaded.has_timing else None,
        "rows": dict(zip(_ROWS, load.rows, strict=True)),
        "members": members,
    }
