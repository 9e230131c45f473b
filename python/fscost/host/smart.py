"""SMART counters of a drive, read with smartctl or nvme-cli. Any field may be missing, have another
type, or hold an absurd value."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscost.host.tools import tool

_TIMEOUT_S = 30
_MOST = 1 << 80
_DATA_UNIT_BYTES = 512_000
"""Size of a data unit in the NVM Express base specification, SMART / Health Information: a thousand
times 512 bytes."""
_SECTOR_BYTES = 512
_HOST_BYTES = {
    "Host_Writes_32MiB": 32 << 20,
    "Host_Writes_GiB": 1 << 30,
    "Lifetime_Writes_GiB": 1 << 30,
}
_NAND_BYTES = {
    "NAND_Writes_32MiB": 32 << 20,
    "NAND_Writes_1GiB": 1 << 30,
    "NAND_GiB_Written": 1 << 30,
    "NAND_GB_Written_TLC": 1 << 30,
}
"""Bytes in one unit of the raw value, by the attribute names of smartmontools' drivedb.h."""
_NVME_NAMES = {
    "host_write_bytes": ("data_units_written",),
    "percent_used": ("percentage_used", "percent_used"),
    "power_on_hours": ("power_on_hours",),
    "media_errors": ("media_errors",),
}
"""Names of the counters in the output of nvme-cli and smartctl."""


def read(device: Path) -> dict[str, Any]:
    """Read a drive's counters: `tool`, `model`, and those that the drive reports of
    `host_write_bytes`, `nand_write_bytes`, `percent_used`, `power_on_hours` and `media_errors`. If
    none can be read, return `unavailable` with the reason."""
    if tool("smartctl") is not None:
        return _asked(["smartctl", "--json", "--all", str(device)], of_smartctl)
    if tool("nvme") is not None and device.name.startswith("nvme"):
        return _asked(["nvme", "smart-log", str(device), "-o", "json"], of_nvme)
    return {"unavailable": "neither smartctl nor nvme is installed (apt install smartmontools)"}


def _asked(command: list[str], parse: Any) -> dict[str, Any]:
    try:
        # smartctl's exit status reports the drive's problems; it prints its output in any case
        # (smartctl(8), EXIT STATUS).
        answer = subprocess.run(
            [str(tool(command[0])), *command[1:]],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        found = parse(json.loads(answer.stdout.decode("utf-8", "replace")))
    except subprocess.TimeoutExpired:
        return {"unavailable": f"{command[0]} gave no answer within {_TIMEOUT_S} s"}
    except (OSError, ValueError, RecursionError) as error:
        return {"unavailable": f"{command[0]}: {error}"}
    if not found:
        return {"unavailable": f"{command[0]} reports no counters for this drive"}
    return {"tool": command[0], **found}


def of_smartctl(value: Any) -> dict[str, Any]:
    """Parse the output of `smartctl --json --all` for a SATA or NVMe drive."""
    root = _mapping(value)
    found: dict[str, Any] = {}
    if isinstance(model := root.get("model_name"), str):
        found["model"] = model[:80]
    counters = of_nvme(root.get("nvme_smart_health_information_log"))
    table = _mapping(root.get("ata_smart_attributes")).get("table")
    sector = _number(root.get("logical_block_size")) or _SECTOR_BYTES
    for entry in table if isinstance(table, list) else []:
        name, raw = _mapping(entry).get("name"), _mapping(_mapping(entry).get("raw")).get("value")
        if (raw := _number(raw)) is None or not isinstance(name, str):
            continue
        if name == "Total_LBAs_Written":
            counters["host_write_bytes"] = raw * sector
        elif name in _HOST_BYTES:
            counters["host_write_bytes"] = raw * _HOST_BYTES[name]
        elif name in _NAND_BYTES:
            counters["nand_write_bytes"] = raw * _NAND_BYTES[name]
    if (hours := _number(_mapping(root.get("power_on_time")).get("hours"))) is not None:
        counters["power_on_hours"] = hours
    return {**found, **counters} if counters else {}


def of_nvme(value: Any) -> dict[str, Any]:
    """Parse the output of `nvme smart-log -o json`, or the same log in smartctl's output, which
    spells some names differently."""
    log = _mapping(value)
    found: dict[str, Any] = {}
    for name, spelled in _NVME_NAMES.items():
        numbers = (_number(log.get(each)) for each in spelled)
        if (number := next((each for each in numbers if each is not None), None)) is not None:
            found[name] = number * _DATA_UNIT_BYTES if name == "host_write_bytes" else number
    return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """Difference between two readings, for counters that both have and that did not decrease."""
    found = {}
    for name in ("host_write_bytes", "nand_write_bytes", "media_errors"):
        begin, end = _number(before.get(name)), _number(after.get(name))
        if begin is not None and end is not None and end >= begin:
            found[name] = end - begin
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    """Parse a counter; nvme-cli prints large ones as text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 40:
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < _MOST else None
