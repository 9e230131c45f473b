"""Selection of the variants of a test that run: tests/variants.py."""

import pytest
from tests import variants

LETTERS = "abcdefgh"


@pytest.fixture(autouse=True)
def _no_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FSCOST_TEST_LONG", raising=False)


def chosen(count: int, always: str = "", key: str = "") -> set[str]:
    found = variants.some(LETTERS, count, always, key)
    assert [each.values for each in found] == [(letter,) for letter in LETTERS], "none is left out"
    return {str(each.values[0]) for each in found if not each.marks}


def test_some_run_and_the_others_are_long() -> None:
    assert len(chosen(3)) == 3
    assert chosen(3) == chosen(3), "both workers draw the same"
    assert len({frozenset(chosen(3, key=key)) for key in LETTERS}) > 1
    assert chosen(0, "ab") == {"a", "b"}
    assert {"a", "b"} < chosen(2, "ab")
    assert len(chosen(2, "ab")) == 4
    assert chosen(20) == set(LETTERS)


def test_a_soak_runs_whatever_was_drawn_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSCOST_TEST_LONG", "1")
    assert chosen(3) == set()
    assert chosen(3, "ab") == {"a", "b"}


def test_another_seed_draws_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for seed in range(40):
        monkeypatch.setattr(variants, "SEED", seed)
        found |= chosen(1)
    assert found == set(LETTERS)


def test_a_tuple_is_several_arguments() -> None:
    assert [each.values for each in variants.some([("a", 1), ("b", 2)], 2)] == [("a", 1), ("b", 2)]
