"""Values for the page's template. Values for scripts are JSON with `<`,
`>`, `&` and `'` escaped (jinja2's `tojson`)."""

import base64
import gzip
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa
import vl_convert
from altair.utils import schemapi

from fscost.report.charts import themed
from fscost.report.figures import LATENCY, figures
from fscost.report.html.templates import template
from fscost.report.html.vega import runtime
from fscost.report.machine import csv_of
from fscost.view import repeat
from fscost.view.grid import NOTHING, plain
from fscost.view.page import Page
from fscost.view.summary import label, titled
from fscost.view.tables import SUMMARY, Table
from fscost.view.units import decimal_bytes, human, human_ratio, human_share

_TEXTS = (
    *("profile", "cause", "structure", "phase", "metric", "verdict", "unit", "disk"),
    *("text", "kernel", "criterion", "outcome", "what", "option", "against", "power_cut"),
)
_TONES = (
    *(("REPRODUCED", "good"), ("PARTLY", "open"), ("NOT REPRODUCED", "bad")),
    *(("REVERSED", "bad"), ("INCONCLUSIVE", "open"), ("CANNOT", "open")),
    *(("SAFE", "good"), ("NEEDS-REPAIR", "open"), ("EXPOSES-STALE", "bad")),
    *(("LOSES-ACKED", "bad"), ("CORRUPTS", "bad")),
)
"""First words of a verdict, and its colour. No words are the beginning of others."""
_TBW = "lifetime_write_bytes"
_LARGEST_DIGITS = 1e21
"""Number from which on JavaScript writes an exponent."""
_HEADERS = {
    "power_cut": "power cut",
    "ratio_low": "ratio, low end",
    "ratio_high": "ratio, high end",
    "low": "interval, low end",
    "high": "interval, high end",
    "what": "of",
    "against": "compared with",
    "at_most_ns": "took at most",
    "longer": "share that took longer",
    "write_bytes": "bytes written",
    "measured": "in the totals",
    "redundant_write_bytes": "of which parity or copies",
    "read_bytes": "bytes read",
    "parity_read_bytes": "read for parity",
    "host_write_bytes": "host bytes",
    "nand_write_bytes": "NAND bytes",
    "device_amplification": "WA of the device",
    "exact_amplification": "… if runs repeat exactly",
    "roaming_amplification": "… if runs roam over the disk",
    _TBW: "host bytes until worn out",
    "lifetime_runs": "runs until worn out",
}


@dataclass(frozen=True)
class Cell:
    """Text of a table cell, and the key by which it is sorted."""

    text: str
    key: str
    is_number: bool


def html_text(page: Page) -> str:
    """Return the page."""
    # Altair's validation takes a third of the drawing time. The tests draw each chart with
    # validation. vl-convert compiles without the GIL, so that the next figure is made meanwhile.
    with schemapi.debug_mode(False), ThreadPoolExecutor(1) as pool:
        found, compiling = [], {}
        for figure in figures(page):
            runtime()
            found.append(figure)
            spec = themed(figure.chart, "container", is_validated=False)
            compiling[figure.identity] = pool.submit(compiled, spec)
        specs = {identity: each.result() for identity, each in compiling.items()}
    results = page.results
    vega = runtime().result() if found else ""
    scripts = [
        f"(() => {{ {vega} }})();".replace("</script", "<\\/script"),
        template("page.js").render(),
    ]
    return template("page.html.j2").render(
        page=page,
        tones=_TONES,
        view=page.view,
        manifest=results.manifest,
        name=plain(results.manifest.name),
        answers=page.answers,
        problems=[*page.damage, *page.view.problems],
        has_models=not page.modelled.is_empty,
        tables={name: _Shown.of(table) for name, table in page.tables.items()},
        figures={figure.identity: figure for figure in found},
        of_run=[figure for figure in found if not figure.anchor],
        times=[f for f in found if not f.anchor and f.name.startswith(LATENCY)],
        measures=[f for f in found if not f.anchor and f.name in SUMMARY],
        by_profile={
            each.anchor: [figure for figure in found if figure.anchor == each.anchor]
            for each in page.kept.explained
        },
        specs=specs,
        downloads={name: csv_text(table.data) for name, table in page.tables.items()},
        raw=base64.b64encode(gzip.compress(csv_text(results.samples).encode(), mtime=0)).decode(),
        samples=results.samples.num_rows,
        provenance=repeat.provenance(results),
        command=repeat.command(results),
        steps=repeat.steps(results),
        mounts=repeat.mounts(results),
        environment=repeat.environment(results),
        scripts=scripts,
        script_hashes=" ".join(f"'{digest(script)}'" for script in scripts),
    )


def digest(script: str) -> str:
    """Return the source by which a Content-Security-Policy allows this script, and no other: a
    second wall behind the escaping of texts."""
    return f"sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}"


def csv_text(table: pa.Table) -> str:
    """Return exact numbers in Python's notation, so that reading them back gives the same
    values."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return csv_of(table.column_names, rows)


def compiled(spec: Any) -> Any:
    """Compile a chart's specification here, so that the page need not do it each time it is opened.
    Columns replace rows, so that each column's name occurs only once."""
    # The compiler only copies the rows, and its copying would take most of the time.
    datasets = spec["datasets"]
    found = vl_convert.vegalite_to_vega(spec | {"datasets": dict.fromkeys(datasets, ())})
    for source in found["data"]:
        if rows := datasets.get(source["name"]):
            source["values"] = {name: [_short(row[name]) for row in rows] for name in rows[0]}
    return found


def _short(value: Any) -> Any:
    """Return a number as JavaScript writes it: 1 for 1.0, and no number for infinities."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _LARGEST_DIGITS else value


@dataclass(frozen=True)
class _Shown:
    """A table in the form that the template lists."""

    name: str
    title: str
    headers: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[Cell]]

    @staticmethod
    def of(table: Table) -> "_Shown":
        data = table.data
        headers = [
            (_HEADERS.get(name, titled(name, table.units.get(name, ""))), name not in _TEXTS)
            for name in data.column_names
        ]
        rows = [
            [
                _cell(value, row.get("unit", "") if unit == "unit" else unit, name)
                for name, value in row.items()
                for unit in [table.units.get(name, "")]
            ]
            for row in data.to_pylist()
        ]
        return _Shown(table.name, table.title, headers, rows)


def _cell(value: Any, unit: str, column: str) -> Cell:
    if value is None:
        return Cell(NOTHING, "", column not in _TEXTS)
    if isinstance(value, bool):
        return Cell("yes" if value else "no", str(int(value)), False)
    if isinstance(value, (int, float)):
        # Data sheets rate a life in decimal units, and `fscost wear` prints those.
        text = decimal_bytes(value) if column == _TBW else _number(value, unit)
        return Cell(text, repr(float(value)), True)
    text = str(value)
    if column in ("metric", "cause", "structure"):
        text = label(text)
    return Cell(plain(text), plain(text), False)


def _number(value: float, unit: str) -> str:
    if unit == "times":
        return human_ratio(value)
    if unit in ("share", "percent"):
        return human_share(value)
    return human(value, unit or "count")
