"""Pictures of a disk's activity: block offset over time, as SVG, with the requests as Parquet."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fscost import files
from fscost.results import ACTIVITY, CELLS, RunResults
from fscost.view.times import model_name

_COLUMNS = ("submit_ns", "op", "offset", "length", "latency_ns")
_COLOURS = {"read": "#2a9d4a", "write": "#1f5fbf", "flush": "#c8352b"}
_WIDTH, _HEIGHT, _MARGIN = 960, 420, 64
_LEAST_SPAN_S = 1e-3
_LAST_NS = (1 << 63) - 1


def keep(results: RunResults, disk: str = "journal") -> list[Path]:
    """Draw this disk during the measured phases, in the run's folder: the first finished cell of
    each profile that has the disk. Return the files made."""
    made: list[Path] = []
    drawn: set[str] = set()
    for cell in results.manifest.done:
        requests = results.folder / CELLS / cell.cell / "requests.parquet"
        if cell.profile in drawn or not requests.exists():
            continue
        table = pq.read_table(requests)
        table = table.filter(pc.equal(table["disk"].cast(pa.string()), disk))
        submit_ns = table["submit_ns"].to_numpy()
        begin_ns, end_ns = _measured(cell.facts)
        table = table.filter(pa.array((begin_ns <= submit_ns) & (submit_ns < end_ns)))
        if not table.num_rows:
            continue
        drawn.add(cell.profile)
        title = f"{cell.profile}: disk {disk}{_timed_as(cell.facts, disk)}"
        chosen = table.select([name for name in _COLUMNS if name in table.schema.names])
        made += _write(results.folder / ACTIVITY / cell.cell, chosen, title)
    return made


def _measured(facts: Mapping[str, Any]) -> tuple[int, int]:
    """Return the span of the measured phases, or all time if the manifest has none."""
    match facts.get("measured_span_ns"):
        case [int(begin_ns), int(end_ns)]:
            return begin_ns, end_ns
    return 0, _LAST_NS


def _timed_as(facts: Mapping[str, Any], disk: str) -> str:
    match facts.get("device_models"):
        case {**models} if isinstance(model := models.get(disk), str):
            return f", {'on' if files.is_device_name(model) else 'timed as'} {model_name(model)}"
    return ""


def _write(path: Path, table: pa.Table, title: str) -> list[Path]:
    files.make_folder(path.parent)
    rows, picture = path.with_name(f"{path.name}.parquet"), path.with_name(f"{path.name}.svg")
    with files.replacing(rows, follow=False) as file:
        pq.write_table(table, file, compression="zstd")
    with files.replacing(picture, follow=False) as file:
        file.write(svg(table, title).encode())
    return [rows, picture]


def svg(table: pa.Table, title: str) -> str:
    """Draw a mark for each request, at its submission time and from its first byte to its last,
    with flushes below the axis. Requests that fall on the same pixels are drawn once."""
    time_s = (table["submit_ns"].to_numpy() - table["submit_ns"].to_numpy().min()) / 1e9
    offset = table["offset"].to_numpy().astype(float)
    end = offset + table["length"].to_numpy()
    ops = np.asarray(table["op"].cast(pa.string()).to_pylist())
    span_s, most = max(float(time_s.max()), _LEAST_SPAN_S), max(float(end.max()), 1.0)
    bottom = _HEIGHT - _MARGIN
    x = np.round(_MARGIN + time_s / span_s * (_WIDTH - 2 * _MARGIN)).astype(int)
    low = np.round(bottom - offset / most * (bottom - _MARGIN)).astype(int)
    high = np.round(bottom - end / most * (bottom - _MARGIN)).astype(int)
    size = f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_MARGIN}" y="24" font-size="14">{escape(title)}</text>',
    ]
    for op, colour in _COLOURS.items():
        chosen = ops == op
        places = sorted(set(zip(x[chosen], low[chosen], high[chosen], strict=True)))
        marks = "".join(
            f"M{at} {bottom + 6}v6" if op == "flush" else f"M{at} {from_ + 1}V{to}"
            for at, from_, to in places
        )
        if marks:
            parts.append(f'<path class="{op}" d="{marks}" stroke="{colour}" stroke-width="1"/>')
    parts += _axes(span_s, most, bottom)
    return "\n".join([*parts, "</svg>", ""])


def _axes(span_s: float, most_bytes: float, bottom: int) -> list[str]:
    right = _WIDTH - _MARGIN
    parts = [f'<path d="M{_MARGIN} {_MARGIN}V{bottom}H{right}" stroke="black" fill="none"/>']
    for part in (0, 0.25, 0.5, 0.75, 1):
        x = _MARGIN + part * (right - _MARGIN)
        y = bottom - part * (bottom - _MARGIN)
        parts.append(
            f'<text x="{x:.0f}" y="{bottom + 28}" text-anchor="middle">{part * span_s:.3g} s</text>'
        )
        parts.append(
            f'<text x="{_MARGIN - 6}" y="{y + 4:.0f}" text-anchor="end">'
            f"{part * most_bytes / (1 << 20):.3g}</text>"
        )
    parts.append(f'<text x="8" y="{_MARGIN - 14}">offset, MiB</text>')
    for number, (op, colour) in enumerate(_COLOURS.items()):
        x = right - 220 + 80 * number
        parts.append(f'<text x="{x}" y="{_MARGIN - 14}" fill="{colour}">{op}</text>')
    return parts
