"""Numbers as people read them, and sizes as people write them."""

import re

from fscost.errors import InputError

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def human_bytes(value: float) -> str:
    """Three digits and a binary unit: 1.23 GiB."""
    unit = 0
    while unit < len(_BINARY) - 1 and round(abs(value)) >= 1024:
        value /= 1024
        unit += 1
    return f"{value:.0f} B" if unit == 0 else f"{_three_digits(value)} {_BINARY[unit]}"


def human_seconds(value: float) -> str:
    """Three digits: 12.3 s, 4.56 ms; minutes from 100 s on."""
    if value >= 100:
        return f"{value / 60:.1f} min"
    if value >= 1 or value == 0:
        return f"{_three_digits(value)} s"
    return f"{_three_digits(value * 1e3)} ms"


def human_years(value: float) -> str:
    """Years from one year on, else days."""
    if value >= 1000:
        return "> 999 years"
    return f"{_three_digits(value)} years" if value >= 1 else f"{_three_digits(value * 365)} days"


def human_count(value: float) -> str:
    """Whole where it is whole or large."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:,.1f}"


def human(value: float, unit: str) -> str:
    """A value in a metric's unit."""
    if unit == "bytes":
        return human_bytes(value)
    if unit in ("s", "virtual_s"):
        return human_seconds(value)
    if unit == "count":
        return human_count(value)
    if unit == "years":
        return human_years(value)
    if (
        abs(value) >= 1000
    ):  # A workload that hands over next to nothing (deletes, asynchronous I/O) has no amplification worth a number.
        return "> 999"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def human_ratio(value: float) -> str:
    """0.81×, 12.3×."""
    return f"{value:.2f}×" if value < 10 else f"{_three_digits(value)}×"


def parse_size_bytes(text: str) -> int:
    """`4G`, `512M`, `1.5GiB`: powers of 1024, as mkfs and truncate read them; `4GB`: powers of
    1000; a bare number is bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is no size", "write it as 4G, 512M or 1T")
    number, letter, tail = match.groups()
    base = 1000 if letter and (tail or "").lower() == "b" else 1024
    power = _POWERS[letter.lower()]
    whole, _, fraction = number.partition(".")
    # In whole numbers: a float of 1.1T is some bytes off.
    unit_bytes: int = base**power
    divisor: int = 10 ** len(fraction)
    size, rest = divmod(int(whole + fraction) * unit_bytes, divisor)
    if rest and not power:
        raise InputError(f"{text!r} is no whole number of bytes", "write it as 4G, 512M or 1T")
    return size


def parse_duration_s(text: str) -> float:
    """`90s`, `10m`, `1.5h`; a bare number is seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(f"{text!r} is no duration", "write it as 90s, 10m or 2h")
    number, unit = match.groups()
    return float(number) * _SECONDS[unit or "s"]


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
