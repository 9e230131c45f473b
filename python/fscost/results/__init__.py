"""Samples and manifest of a run: writing them to disk and reading them back."""

from fscost.results import worn, written
from fscost.results.journal import JOURNAL
from fscost.results.load import (
    CELLS,
    INPUTS,
    MANIFEST,
    SAMPLES,
    RunResults,
    kept_recording,
    load,
    salvaged,
)
from fscost.results.manifest import CellRecord, Manifest, Skipped
from fscost.results.metrics import METRICS, Combine, Metric
from fscost.results.store import RunStore
from fscost.results.table import SCHEMA, TOTAL, SampleRow, to_table, with_totals

__all__ = [
    "CELLS",
    "INPUTS",
    "JOURNAL",
    "MANIFEST",
    "METRICS",
    "SAMPLES",
    "SCHEMA",
    "TOTAL",
    "CellRecord",
    "Combine",
    "Manifest",
    "Metric",
    "RunResults",
    "RunStore",
    "SampleRow",
    "Skipped",
    "kept_recording",
    "load",
    "salvaged",
    "to_table",
    "with_totals",
    "worn",
    "written",
]
