"""Numbers as people read them."""

import pytest

from fscost.view.units import human_years, ratio_interval


@pytest.mark.parametrize(
    ("years", "text"),
    [
        (1200, "> 999 years"),
        (2.5, "2.5 years"),
        (0.5, "180 days"),
        (1 / 365, "1.0 days"),
        (0.5 / 365, "12 h"),
        (0.02 / 365, "29 min"),
        (0.0, "0.0 min"),
    ],
)
def test_a_life_is_told_in_the_largest_unit_of_which_it_is_one(years: float, text: str) -> None:
    assert human_years(years) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.4312, 1, "0.431 to 1"), (99.96, 999.4, "100 to 999"), (999.5, 12345, "1,000 to 12,345")],
)
def test_the_interval_of_a_ratio_is_never_in_powers_of_ten(
    low: float, high: float, text: str
) -> None:
    assert ratio_interval(low, high) == text
