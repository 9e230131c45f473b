"""Counters of a real device: the output of smartctl or nvme-cli, or the files in which Linux shows
the health of an eMMC or a UFS device."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from fscost import files
from fscost.errors import InputError

Range = tuple[float, float]
_LARGEST_BYTES = 4 << 20
_LARGEST_ATTRIBUTE_BYTES = 4096
"""Size of a page, which an attribute of sysfs cannot exceed."""
_MAKE = "make one with `smartctl --json --xall /dev/NAME > FILE` as root"
_PLACES = "name /sys/block/mmcblkN (eMMC), the folder of a UFS host in /sys, or a file of smartctl"
_EXCEEDED = 0x0B
_PRE_EOL = {
    2: "80 % of its reserved blocks are used (pre_eol_info 2)",
    3: "90 % of its reserved blocks are used (pre_eol_info 3): replace it",
}
"""Values of pre_eol_info in JESD84-B51, and of eol_info in UFS 2.1, that are no cause for calm."""
_ROUNDING = 1
"""Counters of whole percent may be rounded up or down: the specifications do not say."""


@dataclass(frozen=True)
class Counters:
    """Wear that a device has counted. `used`: the least and the most share of its life that is
    used, by the counter `used_by`. Counters that the device does not have are None."""

    origin: str
    model: str = ""
    used: Range | None = None
    used_by: str = ""
    host_write_bytes: int | None = None
    nand_write_bytes: int | None = None
    mean_erases: int | None = None
    capacity_bytes: int | None = None
    power_on_hours: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def left(self) -> Range | None:
        """The least and the most share of its life that is left."""
        if self.used is None:
            return None
        least, most = self.used
        return max(1 - most, 0), max(1 - least, 0)

    @property
    def left_bytes(self) -> tuple[float, float | None] | None:
        """Bytes that the host can still write if the device goes on wearing as it did until now,
        least and most; the most is None if too little is used to tell."""
        if self.used is None or not self.host_write_bytes:
            return None
        least, most = self.used
        written = self.host_write_bytes
        return (
            max(written / most - written, 0) if most else 0,
            max(written / least - written, 0) if least else None,
        )

    def amplification(self, nand_bytes: float) -> float | None:
        """NAND bytes ÷ host bytes since the device was new. A device that counts only erases has
        programmed its `nand_bytes` as often."""
        written = self.nand_write_bytes
        if written is None and self.mean_erases is not None:
            written = int(self.mean_erases * nand_bytes)
        return written / self.host_write_bytes if written and self.host_write_bytes else None


def read(path: Path) -> Counters:
    """Read a device's counters. An InputError names the file, the cause and the remedy."""
    return _of_sysfs(path) if path.is_dir() else _of_json(path)


def _of_json(path: Path) -> Counters:
    try:
        with files.open_regular(path) as file:
            content = files.content(file, _LARGEST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", _PLACES) from error
    if content is None:
        raise InputError(f"{path} is larger than {_LARGEST_BYTES >> 20} MiB", _MAKE)
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}", _MAKE) from error
    from fscost.host import smart

    found = smart.of_smartctl(value) or smart.of_nvme(value)
    if not found.keys() & {"percent_used", "host_write_bytes"}:
        raise InputError(f"{path}: no counter of wear{_message(value)}", _MAKE)
    percent = found.get("percent_used")
    return Counters(
        str(path),
        found.get("model", ""),
        None if percent is None else _around(percent),
        found.get("used_by", ""),
        found.get("host_write_bytes"),
        found.get("nand_write_bytes"),
        found.get("mean_erases"),
        found.get("capacity_bytes"),
        found.get("power_on_hours"),
    )


def _around(percent: int) -> Range:
    return max(percent - _ROUNDING, 0) / 100, (percent + _ROUNDING) / 100


def _message(value: Any) -> str:
    """Return what smartctl says about its failure, such as that it needs root."""
    about = value.get("smartctl") if isinstance(value, Mapping) else None
    messages = about.get("messages") if isinstance(about, Mapping) else None
    first = messages[0] if isinstance(messages, list) and messages else None
    text = first.get("string") if isinstance(first, Mapping) else None
    return f" (smartctl: {text[:120]})" if isinstance(text, str) else ""


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _of_sysfs(path: Path) -> Counters:
    for folder in _folders(path):
        if (folder / "life_time").exists():
            return _of_emmc(path, folder)
        if (folder / "life_time_estimation_a").exists():
            return _of_ufs(path, folder)
    kind = _attribute(path / "device" / "type") or _attribute(path / "type")
    if kind in ("SD", "SDIO", "SDcombo"):
        raise InputError(
            f"{path} is an SD card, which has no counter of wear",
            "drop --now: only --per-day and the model tell its life",
        )
    raise InputError(f"{path} has no life_time or health_descriptor", f"{_PLACES}: {_MAKE}")


def _folders(path: Path) -> Iterator[Path]:
    """Yield the folders that may hold the counters: a UFS disk is some levels below its host."""
    yield path
    yield path / "device"
    resolved = (path / "device").resolve()
    for each in (path, resolved, *resolved.parents):
        yield each / "health_descriptor"


def _of_emmc(path: Path, folder: Path) -> Counters:
    """Read JESD84-B51's DEVICE_LIFE_TIME_EST_TYP_A and _B, which `life_time` holds."""
    file = folder / "life_time"
    levels = [_level(file, word) for word in (_attribute(file) or "").split()]
    if len(levels) != 2:
        raise InputError(f"{file}: not two numbers", "expected for example 0x01 0x02")
    end = _attribute(folder / "pre_eol_info")
    return _leveled(
        path, _attribute(folder / "name"), levels, "life_time", folder / "pre_eol_info", end
    )


def _of_ufs(path: Path, folder: Path) -> Counters:
    names = ("life_time_estimation_a", "life_time_estimation_b")
    levels = [_level(folder / name, _attribute(folder / name) or "") for name in names]
    end = _attribute(folder / "eol_info")
    return _leveled(path, None, levels, "life_time_estimation", folder / "eol_info", end)


def _leveled(
    path: Path, model: str | None, levels: list[int], used_by: str, file: Path, end: str | None
) -> Counters:
    """Counters of tenths of the device's life; A and B are two kinds of memory, of which the more
    worn one decides."""
    worst = max(levels)
    spare = _level(file, end) if end is not None else 0
    size = _attribute(path / "size")
    return Counters(
        str(path),
        model or "",
        ((worst - 1) / 10, worst / 10) if worst else None,
        f"{used_by} {levels[0]:#04x} {levels[1]:#04x}",
        capacity_bytes=int(size) * 512 if size is not None and size.isdecimal() else None,
        warnings=(_PRE_EOL[spare],) if spare in _PRE_EOL else (),
    )


def _level(file: Path, text: str) -> int:
    try:
        level = int(text, 16)
    except ValueError:
        level = -1
    if not 0 <= level <= _EXCEEDED:
        raise InputError(
            f"{file}: {text[:20]!r} is not a level from 0x00 to 0x0B",
            "read the counter on the machine that has the device",
        )
    return level


def _attribute(file: Path) -> str | None:
    """Read a file of sysfs; None if it cannot be read."""
    try:
        with files.open_regular(file) as opened:
            content = files.content(opened, _LARGEST_ATTRIBUTE_BYTES)
    except (OSError, InputError):
        return None
    return None if content is None else content.decode("ascii", "replace").strip()[:80]
