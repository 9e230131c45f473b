"""Variants of a test: a few in each run, different ones in the next run, and all of them in a
soak."""

import os
import random
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from tests.conftest import SEED


def some(
    variants: Iterable[Any], count: int, always: Collection[Any] = (), key: str = ""
) -> list[ParameterSet]:
    """Return parameters for `parametrize`: `always`, and `count` of the others, drawn by the seed
    of the run.

    The rest is marked `long`, so that `make soak` runs it. `key` makes draws independent for tests
    with the same number of variants. If tests marked `long` run, none is drawn: a soak has another
    seed than the tests before it, and both together run every variant.
    """
    every = list(variants)
    count = 0 if os.environ.get("FSCOST_TEST_LONG") else count
    others = [each for each in every if each not in always]
    drawn = random.Random(f"{SEED}/{key}/{len(every)}").sample(others, min(count, len(others)))
    return [_param(each, is_long=each not in always and each not in drawn) for each in every]


def _param(variant: Any, *, is_long: bool) -> ParameterSet:
    values = variant if isinstance(variant, tuple) else (variant,)
    return pytest.param(*values, marks=pytest.mark.long if is_long else ())
