"""Samples and manifest of a run: writing them to disk and reading them back."""

from fscost.results import worn, written
from fscost.results.journal import JOURNAL
from fscost.results.limits import RunFullError
from fscost.results.load import (
    ACTIVITY,
    CELLS,
    INPUTS,
    MANIFEST,
    MINIMISED,
    POWER_CUTS,
    SAMPLES,
    RunResults,
    kept_recording,
    load,
    salvaged,
)
from fscost.results.manifest import CellRecord, Manifest, Skipped
from fscost.results.metrics import METRICS, Combine, Metric
from fscost.results.store import RunStore
from fscost.results.stored import STORED, Stored, how_to_fetch, stored
from fscost.results.table import SCHEMA, TOTAL, SampleRow, to_table, with_totals

__all__ = [
    "ACTIVITY",
    "CELLS",
    "INPUTS",
    "JOURNAL",
    "MANIFEST",
    "METRICS",
    "MINIMISED",
    "POWER_CUTS",
    "SAMPLES",
    "SCHEMA",
    "STORED",
    "TOTAL",
    "CellRecord",
    "Combine",
    "Manifest",
    "Metric",
    "RunFullError",
    "RunResults",
    "RunStore",
    "SampleRow",
    "Skipped",
    "Stored",
    "how_to_fetch",
    "kept_recording",
    "load",
    "salvaged",
    "stored",
    "to_table",
    "with_totals",
    "worn",
    "written",
]
