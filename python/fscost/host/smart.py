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
    "Host_Writes_MiB": 1 << 20,
    "Host_Writes_GiB": 1 << 30,
    "Lifetime_Writes_GiB": 1 << 30,
    "Total_Writes_GiB": 1 << 30,
}
_NAND_BYTES = {
    "NAND_Writes_32MiB": 32 << 20,
    "NAND_Writes_1GiB": 1 << 30,
    "NAND_GiB_Written": 1 << 30,
    "NAND_GB_Written_TLC": 1 << 30,
    "Total_NAND_Writes_GiB": 1 << 30,
    "Lifetime_Nand_Gb": 1 << 30,
}
"""Bytes in one unit of the raw value, by the attribute names of smartmontools' drivedb.h."""
_LIFE_LEFT = (
    "Percent_Lifetime_Remain",
    "Percent_Life_Remaining",
    "Remaining_Lifetime_Perc",
    "SSD_Life_Left",
    "Media_Wearout_Indicator",
    "Wear_Leveling_Count",
)
"""Attributes whose normalized value is the percentage of life left, by their names in drivedb.h;
the earlier ones are more specific. smartctl's `endurance_used` is 100 minus this value, too."""
_PAGES = ("Host_Program_Page_Count", "FTL_Program_Page_Count")
"""Pages that a Crucial or Micron drive programmed for the host, and for itself."""
_MOST_PERCENT = 255
"""Percentage used saturates at 255 (NVM Express base specification; ACS-4, 9.5.8)."""
_NVME_NAMES = {
    "host_write_bytes": ("data_units_written",),
    "percent_used": ("percentage_used", "percent_used"),
    "power_on_hours": ("power_on_hours",),
    "media_errors": ("media_errors",),
}
"""Names of the counters in the output of nvme-cli and smartctl."""


def read(device: Path) -> dict[str, Any]:
    """Read a drive's counters: `tool`, `model`, and those that the drive reports of
    `host_write_bytes`, `nand_write_bytes`, `mean_erases`, `percent_used` (by the counter
    `used_by`), `capacity_bytes`, `power_on_hours` and `media_errors`. If none can be read, return
    `unavailable` with the reason."""
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
    """Parse the output of `smartctl --json --all` (or `--xall`) for a SATA, SAS or NVMe drive."""
    root = _mapping(value)
    about: dict[str, Any] = {}
    if isinstance(model := root.get("model_name"), str):
        about["model"] = model[:80]
    if (size := _number(_mapping(root.get("user_capacity")).get("bytes"))) is not None:
        about["capacity_bytes"] = size
    sector = _number(root.get("logical_block_size")) or _SECTOR_BYTES
    # The later ones are vendor-neutral, and have precedence.
    counters = _of_attributes(root, sector) | _of_statistics(root, sector)
    counters |= of_nvme(root.get("nvme_smart_health_information_log"))
    counters |= _of_any_protocol(root)
    pages = counters.pop("pages", None)
    if pages is not None and "host_write_bytes" in counters:
        host, own = pages
        counters["nand_write_bytes"] = counters["host_write_bytes"] * (host + own) // host
    if (hours := _number(_mapping(root.get("power_on_time")).get("hours"))) is not None:
        counters["power_on_hours"] = hours
    return {**about, **counters} if counters else {}


def _of_attributes(root: Mapping[str, Any], sector: int) -> dict[str, Any]:
    """Counters of vendor-specific attributes, by name: numbers differ between makers."""
    table = _mapping(root.get("ata_smart_attributes")).get("table")
    entries = [_mapping(entry) for entry in table] if isinstance(table, list) else []
    by_name = {name: each for each in entries if isinstance(name := each.get("name"), str)}
    raws = {name: _number(_mapping(each.get("raw")).get("value")) for name, each in by_name.items()}
    found: dict[str, Any] = {}
    units = (
        ("host_write_bytes", {"Total_LBAs_Written": sector} | _HOST_BYTES),
        ("nand_write_bytes", _NAND_BYTES),
    )
    for counter, unit_bytes in units:
        for name, size in unit_bytes.items():
            if (raw := raws.get(name)) is not None:
                found[counter] = raw * size
    host, own = (raws.get(name) for name in _PAGES)
    if host and own is not None:
        found["pages"] = (host, own)
    is_samsung = str(root.get("model_name")).lower().startswith("samsung")
    cycles = raws.get("Wear_Leveling_Count") if is_samsung else None
    if (erases := cycles or raws.get("Ave_Block-Erase_Count")) is not None:
        found["mean_erases"] = erases
    for name in _LIFE_LEFT:
        left = _number(by_name.get(name, {}).get("value"))
        if left is not None and left <= 100:
            found |= {"percent_used": 100 - left, "used_by": name}
            break
    return found


def _of_statistics(root: Mapping[str, Any], sector: int) -> dict[str, Any]:
    """Counters of the ATA device statistics log, which ACS-3 defines for all makers."""
    pages = _mapping(root.get("ata_device_statistics")).get("pages")
    found: dict[str, Any] = {}
    for page in pages if isinstance(pages, list) else []:
        table = _mapping(page).get("table")
        for entry in table if isinstance(table, list) else []:
            name, value = _mapping(entry).get("name"), _number(_mapping(entry).get("value"))
            if name == "Logical Sectors Written" and value is not None:
                found["host_write_bytes"] = value * sector
            elif name == "Percentage Used Endurance Indicator" and _is_percentage(value):
                found |= {"percent_used": value, "used_by": name}
    return found


def _of_any_protocol(root: Mapping[str, Any]) -> dict[str, Any]:
    """Counters that newer versions of smartctl report alike for ATA, SCSI and NVMe."""
    found: dict[str, Any] = {}
    used = _number(_mapping(root.get("endurance_used")).get("current_percent"))
    if _is_percentage(used):
        found |= {"percent_used": used, "used_by": "endurance_used"}
    writes = _mapping(root.get("host_writes"))
    units, size = _number(writes.get("units")), _number(writes.get("bytes_per_unit"))
    if units is not None and size:
        found["host_write_bytes"] = units * size
    return found


def _is_percentage(value: int | None) -> bool:
    return value is not None and value <= _MOST_PERCENT


def of_nvme(value: Any) -> dict[str, Any]:
    """Parse the output of `nvme smart-log -o json`, or the same log in smartctl's output, which
    spells some names differently."""
    log = _mapping(value)
    found: dict[str, Any] = {}
    for name, spelled in _NVME_NAMES.items():
        numbers = (_number(log.get(each)) for each in spelled)
        if (number := next((each for each in numbers if each is not None), None)) is not None:
            found[name] = number * _DATA_UNIT_BYTES if name == "host_write_bytes" else number
    if "percent_used" in found:
        found["used_by"] = "percentage_used"
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
