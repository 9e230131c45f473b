"""Median and interval of a few samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from fscost.stats import Interval, interval, spread

POSITIVE = st.floats(min_value=1e-300, max_value=1e300)
ANY = st.floats(min_value=-1e150, max_value=1e150)


def test_one_sample_has_no_interval() -> None:
    assert interval([7.0]) == Interval(1, 7.0, None, None)
    assert interval([7.0]).relative_half_width is None


def test_identical_samples_have_an_interval_without_width() -> None:
    found = interval([4096.0] * 3)
    assert found == Interval(3, 4096.0, 4096.0, 4096.0)
    assert found.relative_half_width == 0
    assert interval([0.0, 0.0]).relative_half_width == 0


def test_it_is_students_interval_of_the_logarithms() -> None:
    values = [100.0, 110.0, 121.0]
    logs = np.log(values)
    low, high = scipy_stats.t.interval(0.95, 2, loc=logs.mean(), scale=scipy_stats.sem(logs))
    found = interval(values)
    assert found.low == pytest.approx(math.exp(low))
    assert found.high == pytest.approx(math.exp(high))
    assert found.median == 110


def test_a_zero_makes_it_students_interval_of_the_values_from_zero_up() -> None:
    found = interval([0.0, 10.0, 20.0])
    low, high = scipy_stats.t.interval(0.95, 2, loc=10, scale=scipy_stats.sem([0, 10, 20]))
    assert low < 0
    assert found == Interval(3, 10.0, 0.0, pytest.approx(high))


def test_no_samples_and_infinite_ones_are_refused() -> None:
    for values in ([], [1.0, math.inf], [math.nan]):
        with pytest.raises(ValueError, match="finite"):
            interval(values)


def test_spread_is_relative_to_the_median() -> None:
    assert spread([90.0, 100.0, 120.0]) == pytest.approx(0.3)
    assert spread([5.0]) is None
    assert spread([0.0, 0.0, 4.0]) is None


@given(st.lists(POSITIVE, min_size=2, max_size=12) | st.lists(ANY, min_size=2, max_size=12))
def test_it_is_finite_and_contains_the_median_and_warns_of_nothing(values: list[float]) -> None:
    found = interval(values)
    assert found.low is not None
    assert found.high is not None
    assert math.isfinite(found.low)
    assert math.isfinite(found.high)
    assert found.low <= found.median <= found.high
    assert min(values) <= found.median <= max(values)


@given(
    st.lists(st.floats(min_value=1e-6, max_value=1e12), min_size=2, max_size=10),
    st.floats(min_value=1e-3, max_value=1e3),
)
def test_another_unit_changes_nothing_but_the_unit(values: list[float], factor: float) -> None:
    here, there = interval(values), interval([value * factor for value in values])
    assert here.low is not None
    assert there.low is not None
    assert there.low == pytest.approx(here.low * factor, rel=1e-6)
    assert there.median == pytest.approx(here.median * factor, rel=1e-9)


@given(st.permutations([3.0, 5.0, 8.0, 13.0, 21.0]))
def test_the_order_of_samples_does_not_matter(values: list[float]) -> None:
    found = interval(values)
    assert found == interval(sorted(values)) or found.low == pytest.approx(
        interval(sorted(values)).low
    )
