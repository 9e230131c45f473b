"""The metrics of what was written, and why: named after the classifier's own structures and causes,
which are listed nowhere else.

Structures add up to device_write_bytes, so do the four kinds, and so do the causes with `MIXED`.
"""

from fscost import capture
from fscost.errors import HostError


def metric_of(name: str) -> str:
    """The metric of the bytes written of, or because of, something."""
    return f"{name}_write_bytes"


def _named() -> tuple[list[tuple[str, str, bool]], list[tuple[str, str]]]:
    """Without the compiled part nothing is recorded or explained, and who needs it says so."""
    try:
        return capture.structures(), capture.causes()
    except HostError:
        return [], []


_STRUCTURES, _CAUSES = _named()

FILE_DATA, JOURNAL, METADATA, UNKNOWN = map(
    metric_of, ("file_data", "journal", "metadata", "unknown")
)
KINDS = (FILE_DATA, JOURNAL, METADATA, UNKNOWN)
ATIME, MIXED, JOURNAL_ATIME, DOUBTFUL = map(
    metric_of, ("atime", "mixed", "journal_atime", "doubtful_owner")
)

BY_STRUCTURE = {name: metric_of(name) for name, _, _ in _STRUCTURES}
KIND_OF = {
    name: BY_STRUCTURE[name] if BY_STRUCTURE[name] in KINDS else JOURNAL if journal else METADATA
    for name, _, journal in _STRUCTURES
}
"""By structure, the metric among `KINDS` that counts it."""

_TAKEN = {*BY_STRUCTURE.values(), *KINDS}
BY_CAUSE = {
    name: metric_of(f"{name}_cause" if metric_of(name) in _TAKEN else name) for name, _ in _CAUSES
}
"""`log` and `unknown` are structures too, and those have the plain name."""

MEANINGS = (
    {BY_STRUCTURE[name]: f"written: {meaning}" for name, meaning, _ in _STRUCTURES}
    | {
        JOURNAL: "written to a journal or log: all of its structures",
        METADATA: "written of all structures but file data, journal or log, and what is unknown",
    }
    | {BY_CAUSE[name]: f"written for this reason alone: {meaning}" for name, meaning in _CAUSES}
    | {
        MIXED: "written for several reasons at once",
        JOURNAL_ATIME: "the part of atime_write_bytes that is in journal_write_bytes",
        DOUBTFUL: "the part of device_write_bytes whose owning file the disk does not tell for certain",
    }
)
"""What each of these metrics means. A phase of a cell that was explained has all of them, the
others have none."""

ALWAYS_SHOWN = frozenset((*KINDS, ATIME))
"""Shown also where they are zero in all of a run."""
