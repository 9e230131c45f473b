"""Range of a formula's value when some of its numbers were not measured. Every metric is a size, a
count or a duration, so an unknown number is only known to be positive."""

import ast
from collections.abc import Mapping
from itertools import product
from math import inf
from typing import NamedTuple

from fscost.study.formula import Formula, Reference


class Range(NamedTuple):
    """All values from `low` to `high`; either may be infinite."""

    low: float
    high: float


UNKNOWN = Range(0.0, inf)


def range_of(
    formula: Formula, numbers: Mapping[Reference, float], constants: Mapping[str, float]
) -> Range:
    """Compute the range of the formula; a reference that `numbers` lacks is unknown. The range is
    too wide, never too narrow, if an unknown number occurs twice. Raises ZeroDivisionError if a
    known divisor is zero."""

    def of(node: ast.expr) -> Range:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            return Range(node.value, node.value)
        if isinstance(node, ast.BinOp):
            return _combined(node.op, of(node.left), of(node.right))
        if isinstance(node, ast.Call):
            choose = max if ast.unparse(node.func) == "max" else min
            parts = [of(argument) for argument in node.args]
            return Range(choose(part.low for part in parts), choose(part.high for part in parts))
        name = formula.name_of(node)
        if isinstance(name, str):
            return Range(constants[name], constants[name])
        return Range(numbers[name], numbers[name]) if name in numbers else UNKNOWN

    return of(formula.tree)


def without(formula: Formula, profiles: frozenset[str]) -> Formula | None:
    """Return the formula without the arguments of max(…) and min(…) that need one of `profiles`;
    None if it needs one of them elsewhere, or if no argument is left."""

    def kept(node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.BinOp):
            left, right = kept(node.left), kept(node.right)
            return None if left is None or right is None else ast.BinOp(left, node.op, right)
        if isinstance(node, ast.Call):
            arguments = [each for each in map(kept, node.args) if each is not None]
            if len(arguments) < 2:
                return arguments[0] if arguments else None
            return ast.Call(node.func, arguments, [])
        name = None if isinstance(node, ast.Constant) else formula.name_of(node)
        return None if isinstance(name, Reference) and name.profile in profiles else node

    tree = kept(formula.tree)
    if tree is None:
        return None
    return Formula(formula.text, tree, formula.metric, formula.it, formula.is_spread)


def _combined(op: ast.operator, left: Range, right: Range) -> Range:
    if isinstance(op, ast.Add):
        return Range(left.low + right.low, left.high + right.high)
    if isinstance(op, ast.Sub):
        return Range(left.low - right.high, left.high - right.low)
    if isinstance(op, ast.Mult):
        return _product(left, right)
    if right.low == right.high == 0:
        raise ZeroDivisionError
    if right.low < 0 < right.high:
        return Range(-inf, inf)
    return _product(left, _reciprocal(right))


def _reciprocal(of: Range) -> Range:
    """1 ÷ each value, where zero is only an end of the range that no value reaches."""
    if of.high <= 0:
        return Range(-inf if of.high == 0 else 1 / of.high, 1 / of.low)
    return Range(1 / of.high, inf if of.low == 0 else 1 / of.low)


def _product(left: Range, right: Range) -> Range:
    # Values are finite, so zero times a value without a bound is zero.
    ends = [a * b if a and b else 0.0 for a, b in product(left, right)]
    return Range(min(ends), max(ends))
