"""Functions from tables to figures (Altair charts), for pages, files and notebooks alike."""

from fscost.report.charts.bars import causes, loads, measure, paths, phases, structures
from fscost.report.charts.claims import claim, claims_sheet
from fscost.report.charts.effects import effects
from fscost.report.charts.latency import latencies
from fscost.report.charts.maps import block_map, over_time, rewrites, wear_map, writes_per_place
from fscost.report.charts.style import LARGE, PADDING, configured, largest, themed
from fscost.report.charts.tree import tree

__all__ = [
    "LARGE",
    "PADDING",
    "block_map",
    "causes",
    "claim",
    "claims_sheet",
    "configured",
    "effects",
    "largest",
    "latencies",
    "loads",
    "measure",
    "over_time",
    "paths",
    "phases",
    "rewrites",
    "structures",
    "themed",
    "tree",
    "wear_map",
    "writes_per_place",
]
