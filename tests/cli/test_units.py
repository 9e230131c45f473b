"""Sizes in the notation that users type, and numbers in the form that users read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fscost.errors import InputError
from fscost.quantity import parse_duration_s, parse_size_bytes
from fscost.view.summary import percent
from fscost.view.units import (
    human,
    human_bytes,
    human_count,
    human_ratio,
    human_seconds,
)

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("4G", 4 << 30),
        ("4g", 4 << 30),
        ("4GiB", 4 << 30),
        ("4GB", 4 * 1000**3),
        ("512 M", 512 << 20),
        ("1.5K", 1536),
        ("1T", 1 << 40),
        ("0.1T", (1 << 40) // 10),
        ("7B", 7),
        (" 8k ", 8192),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "-4G", "4X", "4 G B", "1e9", "4,5G", "1.5", "nan", "4G4", "٤G\n٤", "0x10"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a size|not a whole number"):
        parse_size_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("10 min", 600), ("1.5H", 5400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1s", "1d", "1h30", "nan", "1e3", "inf"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration"):
        parse_duration_s(text)


@given(st.integers(0, 1 << 60))
def test_bare_numbers_are_bytes(size: int) -> None:
    assert parse_size_bytes(str(size)) == size


@given(st.integers(0, 1023), st.sampled_from("KMGT"))
def test_a_unit_multiplies(number: int, unit: str) -> None:
    assert (
        parse_size_bytes(f"{number}{unit}")
        == number << (10 * (1 + "KMGT".index(unit)))
        == parse_size_bytes(f"{number}.0{unit}iB")
    )


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_an_input_error(text: str) -> None:
    try:
        size = parse_size_bytes(text)
    except InputError:
        return
    assert size >= 0


@given(st.integers(0, 1 << 49))
def test_bytes_are_read_back_within_their_three_digits(size: int) -> None:
    assert parse_size_bytes(human_bytes(size)) == pytest.approx(size, rel=0.006)
    assert len(human_bytes(size)) <= 8


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "bytes", "0 B"),
        (1023, "bytes", "1023 B"),
        (1024, "bytes", "1.00 KiB"),
        (1023.9 * 1024, "bytes", "1.00 MiB"),
        (123456789, "bytes", "118 MiB"),
        (0, "s", "0.00 s"),
        (0.0123, "s", "12.3 ms"),
        (9.999, "s", "10.0 s"),
        (99.9, "s", "99.9 s"),
        (150, "s", "2.5 min"),
        (12345, "count", "12,345"),
        (2.5, "count", "2.5"),
        (1.234, "ratio", "1.23"),
        (38912.4, "ratio", "> 999"),
        (999.4, "ratio", "999"),
    ],
)
def test_numbers_are_read_at_a_glance(value: float, unit: str, text: str) -> None:
    assert human(value, unit) == text


def test_ratios_keep_what_matters() -> None:
    assert human_ratio(12.34) == "12.3×"
    assert human_ratio(0.8) == "0.80×"
    assert human_ratio(0.0) == "0.00×"
    # Rounded to 0.00×, a profile that wrote 8 KiB of 1.7 MiB would seem to write nothing.
    assert human_ratio(0.0046) == "0.0046×"
    assert human_ratio(0.00001) == "< 0.001×"
    assert human_count(0) == "0"
    assert human_count(1.5) == "1.5"
    # The median of 21 and 22 requests.
    assert human_count(21.5) == "22"
    assert human_seconds(1) == "1.00 s"


def test_nothing_at_all_is_a_whole_change_and_little_is_not() -> None:
    """0 B were "99.9 % less"."""
    assert [percent(ratio) for ratio in (0.0, 0.0001, 0.5, 1.5)] == [
        "100 %",
        "99.9 %",
        "50 %",
        "50 %",
    ]


def test_large_counts_have_separators(fscost: Run, tmp_path: Path) -> None:
    writes = (f"{128166372003061629 + 1000 * n},usr,0,Write,{4096 * n},4096,9" for n in range(1200))
    (tmp_path / "t.csv").write_text("\n".join(writes) + "\n")
    text = fscost("replay", "t.csv", "--disk", "usr_0=hdd-7200").stdout
    assert "\nwrite    1,200 " in text
