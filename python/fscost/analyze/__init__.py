"""Analysis of a recording: structure, cause and owner of each written byte, as rows, sums of rows,
and findings in words."""

from fscost.analyze.explain import Explanation, Mark, explain, mark, measured, measured_phases
from fscost.analyze.findings import findings
from fscost.analyze.fsyncs import Fsync, Fsyncs, heard
from fscost.analyze.groups import (
    NO_FILE,
    By,
    Group,
    Rest,
    doubtful_bytes,
    groups,
    kinds,
    largest,
    total_bytes,
    unknown_bytes,
)
from fscost.analyze.instant import Instant, Request, Running, Volatile, at
from fscost.analyze.journal import Journal, Transaction, journal
from fscost.analyze.maps import AREAS, MIXED, Maps, carried_cause, maps
from fscost.analyze.recovery import BtrfsRecovery, Recovery, XfsRecovery
from fscost.analyze.report import Report, report
from fscost.analyze.tree import tree
from fscost.analyze.why import Reason, Reasons, why

__all__ = [
    "AREAS",
    "MIXED",
    "NO_FILE",
    "BtrfsRecovery",
    "By",
    "Explanation",
    "Fsync",
    "Fsyncs",
    "Group",
    "Instant",
    "Journal",
    "Maps",
    "Mark",
    "Reason",
    "Reasons",
    "Recovery",
    "Report",
    "Request",
    "Rest",
    "Running",
    "Transaction",
    "Volatile",
    "XfsRecovery",
    "at",
    "carried_cause",
    "doubtful_bytes",
    "explain",
    "findings",
    "groups",
    "heard",
    "journal",
    "kinds",
    "largest",
    "maps",
    "mark",
    "measured",
    "measured_phases",
    "report",
    "total_bytes",
    "tree",
    "unknown_bytes",
    "why",
]
