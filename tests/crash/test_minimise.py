"""Fewer lost blocks break the same promise, as few as are needed."""

from collections.abc import Collection, Sequence

import pytest

from fscost.crash.minimise import Lost, fewest_last, fewest_lost


def found(lost: Lost, needed: Collection[int], most: int = 600) -> tuple[Lost, bool, int]:
    trials = 0

    def breaks(tried: Sequence[Lost]) -> list[bool]:
        nonlocal trials
        trials += len(tried)
        return [set(needed) <= set(each) for each in tried]

    fewest, is_minimal = fewest_lost(lost, breaks, most)
    return fewest, is_minimal, trials


@pytest.mark.parametrize(
    "needed", [(0,), (99,), (41,), (3, 4), (0, 99), (10, 50, 90), tuple(range(20, 30))]
)
def test_only_the_needed_blocks_are_lost(needed: tuple[int, ...]) -> None:
    fewest, is_minimal, trials = found(tuple(range(100)), needed)
    assert (fewest, is_minimal) == (needed, True)
    assert trials < 400


def test_no_block_is_needed() -> None:
    assert found(tuple(range(9)), ()) == ((), True, 1)
    assert found((), ())[:2] == ((), True)
    assert fewest_last((1, 2), lambda tried: [True for _ in tried]) == ()


def test_thousands_of_blocks_are_few_trials() -> None:
    fewest, is_minimal, trials = found(tuple(range(4278)), (1000, 4000))
    assert (fewest, is_minimal) == ((1000, 4000), True)
    assert trials < 300


def test_the_trials_are_limited() -> None:
    fewest, is_minimal, trials = found(tuple(range(100)), (3, 4, 70), most=30)
    assert {3, 4, 70} < set(fewest)
    assert not is_minimal
    assert trials <= 30


@pytest.mark.parametrize("first", [0, 1, 50, 98, 99])
def test_a_disk_that_keeps_the_order_loses_the_last_blocks(first: int) -> None:
    def breaks(tried: Sequence[Lost]) -> list[bool]:
        assert all(each == tuple(range(100 - len(each), 100)) for each in tried)
        return [first in each for each in tried]

    assert fewest_last(tuple(range(100)), breaks) == tuple(range(first, 100))
