"""Effects of factors. The expected numbers are those of statsmodels 0.15.0 (`sm.OLS` with patsy's
`(C(a, Sum) + C(b, Sum) + C(c, Sum)) ** 2 + C(rep, Sum)` on the logarithms, `t_test` of the same
differences of cell means)."""

import itertools
import math
import random

import pytest

from fscost import profile
from fscost.stats import Effect, Effects, Observation, Verdict, factorial

LEVELS = {"a": ("a0", "a1"), "b": ("b0", "b1", "b2"), "c": ("c0", "c1")}
WHOLE = {
    ("a1",): (0.780877, 0.772838, 0.789),
    ("b1",): (0.984143, 0.971748, 0.996695),
    ("b2",): (1.201998, 1.186859, 1.217329),
    ("c1",): (1.04627, 1.035498, 1.057153),
    ("a1", "b1"): (1.009623, 0.996907, 1.0225),
    ("a1", "b2"): (1.00101, 0.988402, 1.013777),
    ("a1", "c1"): (1.051511, 1.040686, 1.06245),
    ("b1", "c1"): (0.994529, 0.982004, 1.007215),
    ("b2", "c1"): (1.002868, 0.990238, 1.01566),
}
WITHOUT_A1_C1 = {
    ("a1",): (0.742624, 0.732039, 0.753361),
    ("b1",): (0.98765, 0.970437, 1.005168),
    ("b2",): (1.214842, 1.19367, 1.23639),
    ("c1",): (0.995015, 0.980833, 1.009402),
}


def samples() -> list[Observation]:
    rng = random.Random(7)
    found = []
    for repetition in range(3):
        shared = rng.gauss(0, 0.05)
        for a, b, c in itertools.product(*LEVELS.values()):
            size = 5 - 0.3 * (a == "a1") + 0.2 * (b == "b2") + 0.1 * (a == "a1") * (c == "c1")
            value = round(math.exp(size + shared + rng.gauss(0, 0.02)), 3)
            found.append(Observation({"a": a, "b": b, "c": c}, repetition, value))
    return found


def of(found: Effects | None) -> dict[tuple[str, ...], Effect]:
    assert found is not None
    return {each.levels: each for each in found.effects}


def test_effects_and_intervals_are_those_of_statsmodels() -> None:
    found = factorial(samples())
    assert found is not None
    assert (found.is_ratio, found.n, found.degrees) == (True, 36, 24)
    assert (found.inseparable, found.unknown) == ((), ())
    assert [each.levels for each in found.effects[:3]] == [("a1",), ("b2",), ("a1", "c1")]
    for levels, numbers in WHOLE.items():
        effect = of(found)[levels]
        assert (effect.size, effect.low, effect.high) == pytest.approx(numbers, abs=1e-6)
    verdicts = {levels: each.verdict for levels, each in of(found).items()}
    assert verdicts["a1",] is Verdict.LOWER
    assert verdicts["b2",] is Verdict.HIGHER
    assert verdicts["b1",] is Verdict.NOT_SHOWN, "beyond its interval, but below the minimum size"


def test_the_effect_at_each_level_of_another_factor() -> None:
    """−0.3 and −0.2 were put in, as logarithms."""
    effect = of(factorial(samples()))["a1", "c1"]
    assert [level for level, _ in effect.at] == ["c0", "c1"]
    assert [math.log(size) for _, size in effect.at] == pytest.approx([-0.3, -0.2], abs=0.02)


def test_missing_combinations_make_a_pair_inseparable() -> None:
    every = [each for each in samples() if (each.levels["a"], each.levels["c"]) != ("a1", "c1")]
    found = factorial(every)
    assert found is not None
    assert (found.degrees, found.inseparable, found.unknown) == (16, (("a", "c"),), ())
    for levels, numbers in WITHOUT_A1_C1.items():
        effect = of(found)[levels]
        assert (effect.size, effect.low, effect.high) == pytest.approx(numbers, abs=1e-6)
    together = [
        Observation({"a": level, "b": level}, repetition, value)
        for level, value in (("0", 1.0), ("1", 2.0))
        for repetition in range(2)
    ]
    found = factorial(together)
    assert found is not None
    assert (found.effects, found.unknown) == ((), ("a", "b"))


def test_a_zero_among_the_samples_makes_differences() -> None:
    found = factorial(
        [
            Observation({"a": a, "b": b}, repetition, 10.0 * (a == "1") + (b == "1"))
            for a, b in itertools.product("01", repeat=2)
            for repetition in range(2)
        ]
    )
    assert found is not None
    assert not found.is_ratio
    assert [each.factors for each in found.effects] == [("a",), ("b",), ("a", "b")]
    assert [each.size for each in found.effects] == pytest.approx([10, 1, 0], abs=1e-9)
    assert found.effects[0].verdict is Verdict.HIGHER


def test_samples_without_degrees_of_freedom_show_nothing() -> None:
    found = factorial([Observation({"a": a, "b": b}, 0, 2.0 ** int(a)) for a in "01" for b in "01"])
    assert found is not None
    assert found.degrees == 0
    assert {each.verdict for each in found.effects} == {Verdict.NOT_SHOWN}
    assert found.effects[0].size == pytest.approx(2)
    assert found.effects[0].low is None
    assert factorial([Observation({"a": "0"}, 0, 1.0)]) is None


def test_a_screening_design_finds_the_main_effects_of_the_full_factorial() -> None:
    """Eight factors, of which three matter, and two pairs. In the full factorial, every effect is
    known; the 16 runs of the screening design give the same main effects."""
    spelling = "ext4 -o " + ",".join(f"f{number}={{0,1}}" for number in range(8))

    def value(levels: dict[str, str]) -> float:
        on = {name for name, level in levels.items() if level.endswith("1")}
        size = 10 - 0.4 * ("f1" in on) + 0.1 * ("f4" in on) + 0.05 * ("f6" in on)
        return math.exp(size + 0.3 * ({"f0", "f3"} <= on) - 0.2 * ({"f1", "f4"} <= on))

    found = {
        design: factorial(
            [
                Observation(dict(each.levels), 0, value(dict(each.levels)))
                for each in profile.expand_all([spelling], design)
            ]
        )
        for design in ("full", "screening")
    }
    full, screened = (of(each) for each in found.values())
    mains = [(f"f{number}=1",) for number in range(8)]
    screening = found["screening"]
    assert screening is not None
    assert (screening.n, len(screening.inseparable)) == (16, 28)
    assert set(screened) == set(mains)
    for main in mains:
        assert screened[main].size == pytest.approx(full[main].size, rel=1e-9)
    assert full["f1=1",].verdict is Verdict.LOWER
    assert full["f2=1",].verdict is Verdict.NOT_SHOWN
