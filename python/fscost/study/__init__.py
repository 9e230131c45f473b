"""Published experiments, repeated and judged. `published/` holds each one as data, including the
rules for its claims."""

from fscost.study import cut
from fscost.study.judge import (
    MORE_MAY_DECIDE,
    RULES,
    Among,
    JudgedClaim,
    JudgedCriterion,
    Outcome,
    Verdict,
    is_too_small,
)
from fscost.study.load import catalogue, load
from fscost.study.measure import Measured
from fscost.study.model import Published, Scale, Study, Table
from fscost.study.report import Change, Findings, Report, ReportedLine, report
from fscost.study.spec import plan, scale_of

__all__ = [
    "MORE_MAY_DECIDE",
    "RULES",
    "Among",
    "Change",
    "Findings",
    "JudgedClaim",
    "JudgedCriterion",
    "Measured",
    "Outcome",
    "Published",
    "Report",
    "ReportedLine",
    "Scale",
    "Study",
    "Table",
    "Verdict",
    "catalogue",
    "cut",
    "is_too_small",
    "load",
    "plan",
    "report",
    "scale_of",
]
