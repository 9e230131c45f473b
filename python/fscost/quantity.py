"""Sizes and durations in human notation."""

import re

from fscost.errors import InputError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size_bytes(text: str) -> int:
    """Parse a size. `4G`, `512M` and `1.5GiB` use powers of 1024, as in mkfs and truncate; `4GB`
    uses powers of 1000; a bare number is bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is not a size", "write it as 4G, 512M or 1T")
    number, letter, tail = match.groups()
    base = 1000 if letter and (tail or "").lower() == "b" else 1024
    power = _POWERS[letter.lower()]
    whole, _, fraction = number.partition(".")
    # Integers are exact; as a float, 1.1T would be some bytes off.
    unit_bytes: int = base**power
    divisor: int = 10 ** len(fraction)
    size, rest = divmod(int(whole + fraction) * unit_bytes, divisor)
    if rest and not power:
        raise InputError(f"{text!r} is not a whole number of bytes", "write it as 4G, 512M or 1T")
    return size


def parse_duration_s(text: str) -> float:
    """Parse a duration: `90s`, `10m`, `1.5h`; a bare number is seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(f"{text!r} is not a duration", "write it as 90s, 10m or 2h")
    number, unit = match.groups()
    return float(number) * _SECONDS[unit or "s"]
