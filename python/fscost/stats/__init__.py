"""Statistics of few repetitions: tables in, tables out. `interval.py` gives the method, its
references and its limits."""

from fscost.stats.factorial import Effect, Effects, Observation, factorial
from fscost.stats.interval import Interval, interval, spread
from fscost.stats.pareto import pareto
from fscost.stats.ratio import MINIMUM_SIZE, Ratio, Verdict, ratio, verdict
from fscost.stats.summary import Row, by_repetition, half_widths, summarise, to_table, where

__all__ = [
    "MINIMUM_SIZE",
    "Effect",
    "Effects",
    "Interval",
    "Observation",
    "Ratio",
    "Row",
    "Verdict",
    "by_repetition",
    "factorial",
    "half_widths",
    "interval",
    "pareto",
    "ratio",
    "spread",
    "summarise",
    "to_table",
    "verdict",
    "where",
]
