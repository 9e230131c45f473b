"""Range of write amplification between repetitions that are exact, vary, or roam over the disk."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_APART = 2
"""Ratio from which an assumption decides the answer."""


@dataclass(frozen=True)
class Repeated:
    """NAND bytes of one run of the workload, by how repetitions differ (`fscost.wear.Repeat`); None
    if that makes no difference."""

    host_bytes: float
    varied_bytes: float
    exact_bytes: float | None
    roaming_bytes: float | None


def span(of: Repeated) -> str | None:
    """Say which assumptions decide the answer; None if none does."""
    told = []
    if _apart(of, of.exact_bytes) > _APART:
        told.append(
            "Assumed: each repetition writes other addresses of the same regions. If it wrote the"
            f" same addresses in the same order, WA would be {_amplification(of, of.exact_bytes)}"
            f" instead of {_amplification(of, of.varied_bytes)}."
        )
    if _apart(of, of.roaming_bytes) > _APART:
        told.append(
            "Assumed: new files take the places of old ones. WA would be"
            f" {_amplification(of, of.varied_bytes)} to {_amplification(of, of.roaming_bytes)} if"
            " the file system goes on over the whole disk, and the life shorter by as much."
        )
    return " ".join(told) or None


def widest(rows: Iterable[tuple[str, Repeated]]) -> tuple[str, str] | None:
    """Return the name and the sentences of the row whose answer depends most on the assumptions."""
    found = [(name, of, text) for name, of in rows if (text := span(of)) is not None]
    if not found:
        return None
    name, _, text = max(found, key=lambda each: _widest_of(each[1]))
    return name, text


def _widest_of(of: Repeated) -> float:
    return max(_apart(of, of.exact_bytes), _apart(of, of.roaming_bytes))


def _apart(of: Repeated, other_bytes: float | None) -> float:
    if not of.host_bytes or not of.varied_bytes or not other_bytes:
        return 1
    return math.exp(abs(math.log(of.varied_bytes / other_bytes)))


def _amplification(of: Repeated, nand_bytes: float | None) -> str:
    return f"{(nand_bytes or 0) / of.host_bytes:.2f}"
