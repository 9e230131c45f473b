"""Ratios to the baseline, and the verdict on a difference."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fscost.stats import Verdict, interval, ratio, verdict


def test_pairs_are_repetitions() -> None:
    found = ratio({0: 200.0, 1: 1000.0, 2: 40.0, 7: 5.0}, {2: 20.0, 0: 100.0, 1: 500.0, 9: 1.0})
    assert (found.n, found.ratio, found.low, found.high) == (3, 2.0, 2.0, 2.0)
    assert found.verdict is Verdict.HIGHER


def test_pairing_removes_what_a_repetition_has_in_common() -> None:
    shared = [1.0, 3.0, 9.0, 2.0]
    values = {i: 90.0 * s * (1 + 0.001 * i) for i, s in enumerate(shared)}
    baseline = {i: 100.0 * s for i, s in enumerate(shared)}
    assert ratio(values, baseline).verdict is Verdict.LOWER
    apart = interval(list(values.values()))
    assert apart.low is not None
    assert apart.low < 100 < (apart.high or 0)


def test_one_pair_is_never_a_difference() -> None:
    found = ratio({0: 900.0}, {0: 1.0})
    assert (found.n, found.ratio, found.low, found.high, found.verdict) == (
        1,
        900.0,
        None,
        None,
        Verdict.NOT_SHOWN,
    )


@pytest.mark.parametrize(
    ("point", "low", "high", "expected"),
    [
        (0.8, 0.7, 0.9, Verdict.LOWER),
        (1.2, 1.1, 1.3, Verdict.HIGHER),
        (1.5, 0.99, 2.2, Verdict.NOT_SHOWN),  # large, and not sure
        (1.01, 1.009, 1.011, Verdict.NOT_SHOWN),  # sure, and too small
        (1.019999, 1.019999, 1.019999, Verdict.NOT_SHOWN),
        (1.02, 1.02, 1.02, Verdict.HIGHER),
        (0.98, 0.98, 0.98, Verdict.LOWER),
        (1.2, 1.0, 1.4, Verdict.NOT_SHOWN),  # 1 itself is not excluded
        (3.0, None, None, Verdict.NOT_SHOWN),
    ],
)
def test_a_difference_needs_the_interval_and_the_size(
    point: float, low: float | None, high: float | None, expected: Verdict
) -> None:
    assert verdict(point, low, high) is expected


def test_the_minimum_size_is_the_callers() -> None:
    assert verdict(1.01, 1.009, 1.011, minimum_size=0.005) is Verdict.HIGHER


@pytest.mark.parametrize(
    ("values", "baseline", "because"),
    [
        ({0: 5.0, 1: 6.0}, {0: 0.0, 1: 0.0}, "the baseline is zero in every repetition"),
        (
            {0: 0.0, 1: 0.0},
            {0: 0.0, 1: 0.0},
            "the baseline is zero in every repetition and so is this",
        ),
        ({0: 5.0, 1: 6.0}, {0: 1.0, 1: 0.0}, "the baseline is zero in 1 of 2 repetitions"),
        ({0: 5.0}, {1: 5.0}, "no repetition has both"),
    ],
)
def test_without_a_ratio_there_are_words(
    values: dict[int, float], baseline: dict[int, float], because: str
) -> None:
    found = ratio(values, baseline)
    assert (found.ratio, found.low, found.high, found.verdict, found.because) == (
        None,
        None,
        None,
        Verdict.UNDEFINED,
        because,
    )


def test_nothing_written_is_a_ratio_of_zero() -> None:
    found = ratio({0: 0.0, 1: 0.0, 2: 0.0}, {0: 5.0, 1: 6.0, 2: 5.0})
    assert (found.ratio, found.low, found.high, found.verdict) == (0.0, 0.0, 0.0, Verdict.LOWER)


@given(
    st.lists(
        st.tuples(
            st.floats(min_value=1e-3, max_value=1e9), st.floats(min_value=1e-3, max_value=1e9)
        ),
        min_size=2,
        max_size=10,
    )
)
def test_turned_round_it_is_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    values, baseline = (
        {i: a for i, (a, _) in enumerate(pairs)},
        {i: b for i, (_, b) in enumerate(pairs)},
    )
    here, there = ratio(values, baseline), ratio(baseline, values)
    assert here.low is not None
    assert there.high is not None
    if here.low > 1e-280 and there.high < 1e280 and len(pairs) % 2:
        # The median of an even number of samples lies between two of them, and the midpoint of two
        # reciprocals is not the reciprocal of the midpoint.
        assert math.log(here.low) == pytest.approx(-math.log(there.high), rel=1e-6, abs=1e-6)
    both = {here.verdict, there.verdict}
    assert both != {Verdict.LOWER}
    assert both != {Verdict.HIGHER}
