"""Quantiles of Student's t distribution, against SciPy's."""

import pytest
from scipy.special import stdtrit

from fscost.stats.student import two_sided


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_are_those_of_scipy(confidence: float) -> None:
    for degrees in (*range(1, 60), 500, 999, 1000, 1001, 10**6):
        expected = stdtrit(degrees, (1 + confidence) / 2)
        assert two_sided(degrees, confidence) == pytest.approx(expected, rel=1e-12), degrees
