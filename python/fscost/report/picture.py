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
_FORMATS = ("png", "svg", "html")


def drawn(chart: Any, form: str, provenance: Mapping[str, Any]) -> bytes:
    """Draw the chart as `png`, `svg` or `html`."""
    spec = themed(chart, LARGE, "white").to_dict()
    if form == "svg":
        return with_svg_metadata(vl_convert.vegalite_to_svg(spec), provenance).encode()
    if form == "png":
        return with_png_metadata(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE), provenance)
    spec["usermeta"] = dict(provenance)
    return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()


def with_png_metadata(png: bytes, provenance: Mapping[str, Any]) -> bytes:
    """Add an iTXt chunk to the picture."""
    body = KEYWORD.encode() + b"\0\0\0\0\0" + json.dumps(provenance).encode()
    chunk = b"iTXt" + body
    whole = struct.pack(">I", len(body)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:_PNG_HEADER_BYTES] + whole + png[_PNG_HEADER_BYTES:]


def with_svg_metadata(svg: str, provenance: Mapping[str, Any]) -> str:
    """Add a <metadata> element to the picture."""
    head, end, rest = svg.partition(">")
    text = escape(json.dumps(provenance))
    return f"{head}{end}<metadata>{text}</metadata>{rest}"
