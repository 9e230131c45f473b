"""Formulas: their meaning, and invalid ones."""

import ast
from math import inf

import pytest

from fscost.errors import InputError
from fscost.study.formula import Formula, Reference
from fscost.study.unknown import range_of, without


def test_a_formula_is_arithmetic_over_references_and_constants() -> None:
    formula = Formula.parse(
        "(strict.read_again - plain.make.wall_s) / (files * 2) + 0.5", "device_write_bytes"
    )
    a, b = (
        Reference("strict", "read-again", "device_write_bytes"),
        Reference("plain", "make", "wall_s"),
    )
    assert formula.references == {a, b}
    assert formula.constants == {"files"}
    assert formula.value({a: 30.0, b: 10.0}, {"files": 5.0}) == 2.5


def test_it_is_the_profile_of_the_column() -> None:
    assert Formula.parse("it.make / strict.make", "m", "plain").references == {
        Reference("plain", "make", "m"),
        Reference("strict", "make", "m"),
    }


def test_a_disk_is_named_behind_its_phase_and_without_a_phase_it_is_the_total() -> None:
    formula = Formula.parse(
        "it.run@journal.device_flushes / it.run@m0 + it@journal.device_write_bytes", "m", "ext4"
    )
    assert formula.references == {
        Reference("ext4", "run", "device_flushes", "journal"),
        Reference("ext4", "run", "m", "m0"),
        Reference("ext4", "total", "device_write_bytes", "journal"),
    }


def test_the_most_and_the_least() -> None:
    a, b = Reference("a", "x", "m"), Reference("b", "x", "m")
    formula = Formula.parse("max(a.x, b.x) / min(a.x, b.x)", "m")
    assert formula.references == {a, b}
    assert formula.value({a: 2.0, b: 6.0}, {}) == 3.0


def test_a_spread_is_of_all_that_is_in_its_brackets() -> None:
    formula = Formula.parse("spread(a.x / a.y)", "m")
    assert formula.is_spread
    assert formula.references == {Reference("a", "x", "m"), Reference("a", "y", "m")}
    assert Formula.parse("spread(a.x)", "m").only is None
    assert not Formula.parse("a.x", "m").is_spread


def test_a_zero_divisor_is_said_not_hidden() -> None:
    formula = Formula.parse("a.x / a.y", "m")
    with pytest.raises(ZeroDivisionError):
        formula.value({Reference("a", "x", "m"): 1.0, Reference("a", "y", "m"): 0.0}, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b +",
        "a.b ** 2",
        "2 * spread(a.b)",
        "spread(a.b, a.c)",
        "a.b.c.d",
        "__import__('os')",
        "a['b']",
        "'a'",
        "True",
        "a.b if a.b else 1",
        "f(a.b)",
        "max(a.b)",
        "max(*a.b, a.c)",
        "-a.b",
        "a.b // 2",
        "a.b; a.c",
        "a.b@",
        "@m0",
        "a.b@m0@m1",
        "a.b@m0.x.y",
        "2@m0",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="formula"):
        Formula.parse(text, "m")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a.x / max(a.y, gone.y)", 0, 0.5),
        ("max(a.x, gone.x) / a.y", 0.5, inf),
        ("a.x / min(a.y, gone.y)", 0.5, inf),
        ("min(a.x, gone.x) / a.y", 0, 0.5),
        ("gone.x - a.x", -2, inf),
        ("a.x - gone.x", -inf, 2),
        ("gone.x / gone.y", 0, inf),
        ("a.x / (a.y - gone.y)", -inf, inf),
        ("0 * gone.x", 0, 0),
        ("a.x / (0 - gone.y)", -inf, 0),
        ("a.x + a.y * 3", 14, 14),
    ],
)
def test_a_missing_number_is_anything_above_zero(text: str, low: float, high: float) -> None:
    known = {Reference("a", "x", "m"): 2.0, Reference("a", "y", "m"): 4.0}
    assert range_of(Formula.parse(text, "m"), known, {}) == (low, high)


def test_a_missing_profile_leaves_the_most_and_the_least() -> None:
    def text(formula: str) -> str | None:
        found = without(Formula.parse(formula, "m"), frozenset({"gone"}))
        return found and ast.unparse(found.tree)

    assert text("a.x / max(a.y, b.y, gone.y)") == "a.x / max(a.y, b.y)"
    assert text("a.x / max(a.y, gone.y - 1)") == "a.x / a.y"
    assert text("gone.x / max(a.y, b.y)") is None
    assert text("a.x / max(gone.x, gone.y)") is None
