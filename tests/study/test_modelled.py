"""Claims about times on device models."""

from collections.abc import Callable

import pytest

from fscost.study import Outcome, Report

Reported = Callable[..., Report]


@pytest.mark.parametrize(
    ("least", "expected"), [(1.0, Outcome.FAILS), (3.0, Outcome.OPEN), (1.9, Outcome.OPEN)]
)
def test_modelled_times_decide_only_if_their_lower_bounds_agree(
    reported: Reported, least: float, expected: Outcome
) -> None:
    """xfs takes as long as the others in order; by the lower bounds, `least` times as long."""

    def number(short: str, phase: str, metric: str, repetition: int) -> float:
        is_xfs = short == "xfs" and metric == "modelled_least_s"
        return (least if is_xfs else 1.0) * (2.0 + (0.3 * repetition if is_xfs else 0.0))

    claims = reported("nine-filesystems", number).findings[0].claims
    [judged] = [each for each in claims if each.claim.text.startswith("xfs is by far")]
    entry = judged.criteria[0]
    assert entry.outcome is expected
    assert ("the modelled times depend" in entry.measured.because) == (expected is Outcome.OPEN)
