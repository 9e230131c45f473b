"""A figure as a file, with the provenance of its numbers in the file's metadata."""

import json
import struct
import zlib
from collections.abc import Mapping
from html import escape
from typing import Any

import vl_convert

from fscost.report.charts import LARGE, themed

PNG_SCALE = 2.0
KEYWORD = "fscost"
"""Keyword of the PNG's text chunk (PNG specification, 11.3.4.5, iTXt)."""
_PNG_HEADER_BYTES = 8 + 25
"""Size of signature and IHDR chunk; text may follow directly."""
_DARK = (
    "@media (prefers-color-scheme: dark) {"
    " svg > rect { fill: #1e2129 }"
    ' text[fill="#000"] { fill: #ddd }'
    ' [stroke="#000"], [stroke="black"] { stroke: #ddd }'
    ' [stroke="#ddd"] { stroke: #555 }'
    " }"
)
"""Style of an SVG for readers who prefer dark pages: background, text and grid. A rule of a style
sheet outranks Vega's attributes. The palette is for both."""


def drawn(chart: Any, form: str, provenance: Mapping[str, Any]) -> bytes:
    """Draw the chart as `png`, `svg` or `html`."""
    spec = themed(chart, LARGE, "white")
    if form == "svg":
        return svg(spec, provenance).encode()
    if form == "png":
        return with_png_metadata(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE), provenance)
    spec["usermeta"] = dict(provenance)
    return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()


def svg(spec: dict[str, Any], provenance: Mapping[str, Any]) -> str:
    """Draw a specification of Vega-Lite as SVG, which follows the reader's colour scheme."""
    head, end, rest = vl_convert.vegalite_to_svg(spec).partition(">")
    metadata = f"<metadata>{escape(json.dumps(provenance))}</metadata>"
    return f"{head}{end}{metadata}<style>{_DARK}</style>{rest}"


def with_png_metadata(png: bytes, provenance: Mapping[str, Any]) -> bytes:
    """Add an iTXt chunk to the picture."""
    body = KEYWORD.encode() + b"\0\0\0\0\0" + json.dumps(provenance).encode()
    chunk = b"iTXt" + body
    whole = struct.pack(">I", len(body)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:_PNG_HEADER_BYTES] + whole + png[_PNG_HEADER_BYTES:]
