"""Statistics of few repetitions: tables in, tables out. `interval.py` gives the method, its
references and its limits."""

from fscost.stats.interval import Interval, interval, spread
from fscost.stats.ratio import MINIMUM_SIZE, Ratio, Verdict, ratio, verdict
from fscost.stats.summary import Row, by_repetition, half_widths, summarise, to_table, where

__all__ = [
    "MINIMUM_SIZE",
    "Interval",
    "Ratio",
    "Row",
    "Verdict",
    "by_repetition",
    "half_widths",
    "interval",
    "ratio",
    "spread",
    "summarise",
    "to_table",
    "verdict",
    "where",
]
