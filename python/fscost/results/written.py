"""Metrics of bytes written by structure and by cause. Their names come from the classifier, the
only place that lists structures and causes.

Structures add up to device_write_bytes. So do the four kinds, and so do the causes with `MIXED`.
"""

from fscost import capture
from fscost.errors import HostError


def metric_of(name: str) -> str:
    """Return the metric of the bytes written to a structure, or for a cause."""
    return f"{name}_write_bytes"


def _named() -> tuple[list[tuple[str, str, bool]], list[tuple[str, str]]]:
    """Return structures and causes. Without the compiled module both are empty: nothing can be
    recorded or explained, and code that needs the module reports its absence."""
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
"""Metric among `KINDS` that counts each structure."""

_TAKEN = {*BY_STRUCTURE.values(), *KINDS}
BY_CAUSE = {
    name: metric_of(f"{name}_cause" if metric_of(name) in _TAKEN else name) for name, _ in _CAUSES
}
"""Metric of each cause. `log` and `unknown` are also structures, which take the plain name."""

MEANINGS = (
    {BY_STRUCTURE[name]: f"written: {meaning}" for name, meaning, _ in _STRUCTURES}
    | {
        JOURNAL: "written to a journal or log: all of its structures",
        METADATA: "written to all structures except file data, journal or log, and unknown",
    }
    | {BY_CAUSE[name]: f"written for this reason alone: {meaning}" for name, meaning in _CAUSES}
    | {
        MIXED: "written for several reasons at once",
        JOURNAL_ATIME: "the part of atime_write_bytes that is in journal_write_bytes",
        DOUBTFUL: "the part of device_write_bytes whose file is uncertain",
    }
)
"""Meaning of each of these metrics. A phase of an explained cell has all of them; other phases have
none."""

ALWAYS_SHOWN = frozenset((*KINDS, ATIME))
"""Metrics that are shown even if they are zero throughout a run."""
