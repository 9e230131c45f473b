"""Devices described in TOML, from the catalogue or from users. One file serves the wear model and
the latency model."""

from fscost.devices.file import (
    Device,
    Section,
    catalogue,
    find,
    is_file_name,
    parse,
    wrong,
)

__all__ = [
    "Device",
    "Section",
    "catalogue",
    "find",
    "is_file_name",
    "parse",
    "wrong",
]
