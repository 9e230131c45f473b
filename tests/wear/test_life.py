"""Life: arithmetic that can be checked by hand."""

from pathlib import Path

import pytest

from fscost.capture import RecordedInterval
from fscost.results.worn import runs_per_day
from fscost.wear import find, life, measure, trace_sources
from fscost.wear.measure import _seconds

RUN = {
    "pe_cycles": 1000,
    "nand_bytes": 100e9,
    "nand_write_bytes": 1e9,
    "erased_bytes": 0.9e9,
    "host_write_bytes": 0.5e9,
}
MIB = 1 << 20
TRIMMED = (("trim", 4 * MIB), ("write", MIB // 2))


def test_even_wear_lasts_as_long_as_the_rating() -> None:
    # Each run uses 1 % of a cycle of the whole device.
    found = life(**RUN, mean_erases=3, max_erases=3, is_levelled=False)
    assert found.runs == found.mean_runs == pytest.approx(100_000)
    assert found.host_write_bytes == pytest.approx(50e12)
    assert found.years(100_000 / 365) == pytest.approx(1)


def test_uneven_wear_shortens_life_in_proportion_unless_it_is_levelled() -> None:
    found = life(**RUN, mean_erases=2, max_erases=8, is_levelled=False)
    assert (found.runs, found.mean_runs) == (pytest.approx(25_000), pytest.approx(100_000))
    levelled = life(**RUN, mean_erases=2, max_erases=8, is_levelled=True)
    assert levelled.runs == pytest.approx(99_400)


def test_blocks_erased_before_they_are_full_wear_as_much() -> None:
    found = life(**(RUN | {"erased_bytes": 4e9}), mean_erases=3, max_erases=3, is_levelled=False)
    assert (found.runs, found.mean_runs) == (pytest.approx(25_000), pytest.approx(25_000))


@pytest.mark.parametrize(
    ("name", "lines", "fill"),
    [
        # A full merge of BAST erases the log block and the data block.
        ("emmc-8gb", [f"write {at * 7919 % 16384 * 4096} 4096" for at in range(1000)], 1),
        # A trimmed unit of 4 MiB is erased after 512 KiB.
        (
            "sd-card-32gb",
            [f"{what} {at * 4 * MIB} {size}" for at in range(16) for what, size in TRIMMED],
            1,
        ),
        # Blocks that hold little are copied and erased.
        ("sd-card-32gb", [f"write {at * 7919 % 16384 * 4096} 4096" for at in range(1000)], 0.1),
    ],
)
def test_a_device_lasts_until_its_most_erased_block_is_worn_out(
    tmp_path: Path, name: str, lines: list[str], fill: float
) -> None:
    """They were 2 to 10 times too long, because only programmed bytes counted."""
    text = "\n".join(["fio version 2 iolog", "d add", "d open", *(f"d {each}" for each in lines)])
    (tmp_path / "t.iolog").write_text(text + "\n")
    device = find(name)
    [source] = trace_sources(tmp_path / "t.iolog", device, None)
    found = measure(source, device, fill=fill)
    expected = float(device.values["pe_cycles"]) * found.passes / found.erases.max()
    assert found.life.runs == pytest.approx(expected, rel=0.1)


def test_what_writes_nothing_wears_nothing() -> None:
    found = life(**(RUN | {"nand_write_bytes": 0}), mean_erases=0, max_erases=0, is_levelled=True)
    assert (found.runs, found.years(5)) == (None, None)


def test_a_rate_needs_a_time() -> None:
    assert runs_per_day(0) is None
    assert runs_per_day(3600) == 24


def test_a_guests_own_clock_gives_the_rate() -> None:
    """An emulated guest's requests have no times, but its marks have."""
    starts_s = {"mkfs": 1, "work": 3, "more": 5, "end": 10}
    guest = [
        RecordedInterval(name, 0, 0, {}, virtual_ns=at_s * 10**9) for name, at_s in starts_s.items()
    ]
    assert _seconds(guest, ["work", "more"], is_timed=False) == 7
    untimed = [RecordedInterval(name, 0, 10**9, {}) for name in starts_s]
    assert _seconds(untimed, ["work"], is_timed=False) == 0
    assert _seconds(untimed, ["work"], is_timed=True) == 1
