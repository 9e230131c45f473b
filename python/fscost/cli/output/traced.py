"""Output of `fscost explain TRACE`."""

import sys
from pathlib import Path

from fscost.analyze.traced import Traced
from fscost.report import document
from fscost.report.terminal import print_parts
from fscost.view import traced
from fscost.view.grid import Grid


def emit(source: Path, found: Traced, top: int, *, is_json: bool) -> None:
    """Print a trace's numbers: one JSON object, or tables and findings."""
    if is_json:
        value = {"trace": str(source), **traced.json(found)}
        sys.stdout.write(document.text("explain-trace", value))
        return
    parts: list[Grid | str] = [*traced.grids(found, top), *traced.findings(found)]
    print_parts(traced.title(source, found), parts, sys.stdout)
