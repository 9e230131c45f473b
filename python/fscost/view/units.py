"""Numbers in human-readable form."""

import re

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(value: float) -> str:
    """Format bytes with three digits and a binary unit: 1.23 GiB."""
    unit = 0
    while unit < len(_BINARY) - 1 and round(abs(value)) >= 1024:
        value /= 1024
        unit += 1
    return f"{value:.0f} B" if unit == 0 else f"{_three_digits(value)} {_BINARY[unit]}"


def decimal_bytes(value: float) -> str:
    """Format bytes in decimal units, as data sheets do: 600 TB."""
    for size, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if value >= size:
            return f"{value / size:,.3g} {unit}"
    return f"{value / 1e3:,.3g} kB"


def signed_bytes(value: float) -> str:
    """Format bytes with a sign: +1.20 MiB, −4.00 KiB, 0 B."""
    return f"{'−' if value < 0 else '+' if value else ''}{human_bytes(abs(value))}"


def human_seconds(value: float) -> str:
    """Format seconds with three digits: 12.3 s, 4.56 ms; minutes from 100 s on."""
    if value >= 100:
        return f"{value / 60:.1f} min"
    if value >= 1 or value == 0:
        return f"{_three_digits(value)} s"
    return f"{_three_digits(value * 1e3)} ms"


def human_ns(value: float) -> str:
    """Format nanoseconds with three digits: 12.3 µs, 4.56 ms, 1.20 s."""
    if 0 < value < 1e6:
        return f"{_three_digits(value / 1e3)} µs"
    return human_seconds(value / 1e9)


def human_years(value: float) -> str:
    """Format years in the largest unit that gives at least one: years, days, h or min. Two digits,
    because the endurance of the same device varies by more."""
    if value >= 995:
        return "> 999 years"
    for unit, of_a_year in (("years", 1), ("days", 365), ("h", 365 * 24)):
        if value * of_a_year >= 1:
            return f"{_two_digits(value * of_a_year)} {unit}"
    return f"{_two_digits(value * 365 * 24 * 60)} min"


def _two_digits(value: float) -> str:
    if value >= 99.5:
        return f"{round(value, -1):.0f}"
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def human_count(value: float) -> str:
    """Format a count, without decimals if it is whole or at least 10: the median of an even number
    of counts may lie between two."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 10 else f"{value:,.1f}"


def human_share(value: float) -> str:
    """Format a share as a percentage: 12.3 %."""
    return f"{value * 100:.1f} %"


def human(value: float, unit: str) -> str:
    """Format a value in a metric's unit."""
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
    # A workload that writes almost nothing itself (deletes, asynchronous I/O) has no meaningful
    # amplification.
    if abs(value) >= 1000:
        return "> 999"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def human_ratio(value: float) -> str:
    """Format a ratio: 0.0046×, 0.81×, 12.3×."""
    if 0 < value < 0.0005:
        return "< 0.001×"
    if 0 < value < 0.095:
        return f"{value:.2g}×"
    return f"{value:.2f}×" if value < 10 else f"{_three_digits(value)}×"


def plain_ratio(value: float) -> str:
    """Format a ratio with three digits, without its sign: 0.431, 12.3, 1,230."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def ratio_interval(low: float, high: float) -> str:
    """Format the interval of a ratio: 0.431 to 0.435."""
    return f"{plain_ratio(low)} to {plain_ratio(high)}"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def slug(text: str) -> str:
    """Turn a name into one for a file or an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"
