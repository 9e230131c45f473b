"""Devices described in TOML, from the catalogue or from users: one file for the models of wear and
of latency."""

from fscost.devices.file import (
    Device,
    Section,
    catalogue,
    find,
    is_file_name,
    parse,
    read_device,
    wrong,
)

__all__ = [
    "Device",
    "Section",
    "catalogue",
    "find",
    "is_file_name",
    "parse",
    "read_device",
    "wrong",
]
