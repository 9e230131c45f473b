"""Output of a run for programs: one JSON object, or one CSV line for each profile, phase and
metric."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from functools import cache
from io import StringIO
from typing import Any

from fscost.report import document
from fscost.results import RunResults
from fscost.stats import Row
from fscost.view.grid import plain
from fscost.view.run import View
from fscost.view.sweep import rows as sweep_rows

_INTERNAL = ("facts", "samples_sha256", "files_sha256")
_FORMULAS = ("=", "+", "-", "@")
_COLUMNS = [field.name for field in fields(Row)]


def json_text(results: RunResults, view: View) -> str:
    """Return exactly one object: `schema`, `run`, `rows`, `power_cut`, `headline`, `why`,
    `cautions`, `findings`, `skipped`, `failed`, `not_explained`; `effects` of a sweep, and
    `pareto` with --pareto."""
    manifest = results.manifest.to_json()
    cells = manifest.pop("cells")
    skipped = manifest.pop("skipped")
    del manifest["samples_sha256"]
    run = {"folder": str(results.folder), **manifest, "order": [cell["cell"] for cell in cells]}
    failed = [
        {name: value for name, value in cell.items() if name not in _INTERNAL}
        for cell in cells
        if cell["status"] == "failed"
    ]
    value = {
        "run": run,
        "rows": [asdict(row) for row in view.rows],
        "power_cut": dict(view.power_cut),
        "headline": view.headline,
        "why": list(view.why),
        "cautions": list(view.cautions),
        "findings": list(view.breakdown.findings),
        "skipped": skipped,
        "failed": failed,
        "not_explained": [
            {"profile": profile, "because": because}
            for profile, because in view.breakdown.not_explained.items()
        ],
    }
    if view.sweeps:
        value["effects"] = [asdict(row) for sweep in view.sweeps for row in sweep_rows(sweep)]
    if view.pareto is not None:
        value["pareto"] = [row[0] for row in view.pareto.rows]
    return document.text("run", value)


def csv_text(view: View) -> str:
    """Return the rows, with a header."""
    return csv_of(_COLUMNS, (map(_cell, asdict(row).values()) for row in view.rows))


def csv_of(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Write a header and rows as CSV, without control characters and formulas; missing values are
    empty."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    # Most texts of a column are the same.
    text_of = cache(_text)
    writer.writerow(map(text_of, header))
    writer.writerows(
        [text_of(value) if isinstance(value, str) else value for value in row] for row in rows
    )
    return buffer.getvalue()


def _text(value: str) -> str:
    text = plain(value)
    # A spreadsheet would run it (owasp.org/www-community/attacks/CSV_Injection); a quote makes it
    # text.
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
