"""Numbers as people read them."""

import re

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


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


def human_ns(value: float) -> str:
    """Three digits: 12.3 µs, 4.56 ms, 1.20 s."""
    if 0 < value < 1e6:
        return f"{_three_digits(value / 1e3)} µs"
    return human_seconds(value / 1e9)


def human_years(value: float) -> str:
    """In the largest unit of which it is at least one: years, days, h or min."""
    if value >= 1000:
        return "> 999 years"
    for unit, of_a_year in (("years", 1), ("days", 365), ("h", 365 * 24)):
        if value * of_a_year >= 1:
            return f"{_three_digits(value * of_a_year)} {unit}"
    return f"{_three_digits(value * 365 * 24 * 60)} min"


def human_count(value: float) -> str:
    """Whole where it is whole or large."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:,.1f}"


def human(value: float, unit: str) -> str:
    """A value in a metric's unit."""
    if unit == "bytes":
        return human_bytes(value)
    if unit in ("s", "virtual_s"):
        return human_seconds(value)
    if unit in ("ns", "virtual_ns"):
        return human_ns(value)
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


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def slug(text: str) -> str:
    """A name for a file or an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"
