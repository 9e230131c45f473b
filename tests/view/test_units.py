"""Numbers as people read them."""

import pytest

from fscost.view.units import human_years


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
