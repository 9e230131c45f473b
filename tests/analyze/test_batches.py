"""The native explanation can be read any number of times."""

from pathlib import Path

from fscost._native import Explanation, Recording


def rows(explanation: Explanation) -> int:
    return sum(len(batch["copy"]) for batch in explanation)


def test_each_iteration_begins_with_the_first_row(recording: Path) -> None:
    explanation = Recording(recording).explain()
    begun = iter(explanation)
    first = next(begun)
    assert next(iter(explanation)) == first
    assert rows(explanation) == rows(explanation) > 0
    assert len(first["copy"]) + sum(len(batch["copy"]) for batch in begun) == rows(explanation)
