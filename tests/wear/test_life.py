"""Life: arithmetic that can be checked by hand."""

import pytest

from fscost.capture import RecordedInterval
from fscost.results.worn import runs_per_day
from fscost.wear import life
from fscost.wear.measure import _seconds

RUN = {"pe_cycles": 1000, "nand_bytes": 100e9, "nand_write_bytes": 1e9, "host_write_bytes": 0.5e9}


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
