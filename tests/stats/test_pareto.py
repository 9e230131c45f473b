"""Choices that nothing improves on in two metrics."""

from fscost.stats import pareto


def values(*numbers: float) -> dict[int, float]:
    return dict(enumerate(numbers))


def test_what_is_worse_in_both_is_not_in_the_set() -> None:
    first = {
        name: values(number, number) for name, number in zip("abcd", (4, 1, 3, 2), strict=True)
    }
    second = {
        name: values(number, number) for name, number in zip("abcd", (1, 4, 3, 2), strict=True)
    }
    assert pareto(first, second) == ["b", "d", "a"]


def test_a_difference_that_is_not_shown_excludes_nothing() -> None:
    time = {"a": values(1.0, 2.0, 1.5), "b": values(2.0, 1.0, 1.6)}
    same = {name: values(5, 5, 5) for name in "ab"}
    assert pareto(same, time) == ["a", "b"]
    assert pareto({"a": values(5, 5, 5), "b": values(9, 9, 9)}, time) == ["a"]
    # One sample is never called a difference.
    alone = {"a": values(1), "b": values(9)}
    assert pareto(alone, alone) == ["a", "b"]


def test_profiles_without_one_of_the_metrics_are_left_out() -> None:
    assert pareto({"a": values(1), "b": values(2)}, {"b": values(2)}) == ["b"]
