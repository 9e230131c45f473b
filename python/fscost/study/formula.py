"""Formulas over measured numbers, as in a study's data file:
`(strict.make - plain.make) / strict.make`.

`PROFILE.PHASE` is the study's own metric in that phase; `PROFILE.PHASE.METRIC` is another metric.
Hyphens in a phase's name are written as underscores. `PROFILE.PHASE@DISK` and
`PROFILE.PHASE@DISK.METRIC` restrict the value to one disk; `PROFILE@DISK.METRIC` is that disk's
total. A bare name is a constant (an option of the workload). In a table, `it` stands for the
profile of the column. `spread(FORMULA)` is (largest − smallest) ÷ median of the formula's values in
all repetitions.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fscost.errors import InputError

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {"max": max, "min": min}
_REMEDY = (
    "a formula may contain numbers, + - * / ( ), max(…), min(…), names of constants, PROFILE.PHASE,"
    " PROFILE.PHASE.METRIC and, for one disk, PROFILE.PHASE@DISK.METRIC; spread(…) must enclose the"
    " whole formula"
)
_SPREAD = "spread"
_AT = "_at_disk_"
"""Replacement of `@`, which Python would parse as an operator like `*`."""


@dataclass(frozen=True)
class Reference:
    """Reference to one measured number. `profile` is its short name in the study; `disk` is empty
    for the sum over all disks."""

    profile: str
    phase: str
    metric: str
    disk: str = ""

    def __str__(self) -> str:
        return f"{self.profile}.{self.phase}{'@' * bool(self.disk)}{self.disk}"


@dataclass(frozen=True)
class Formula:
    """Checked formula. `value` needs a number for each of `references` and `constants`.
    `is_spread`: the result is the spread of the values of single repetitions."""

    text: str
    tree: ast.expr
    metric: str
    it: str = ""
    is_spread: bool = False

    @staticmethod
    def parse(text: str, metric: str, it: str = "") -> "Formula":
        """Parse a formula. `metric` is the metric of PROFILE.PHASE. An InputError names the part
        that is not valid in a formula."""
        try:
            tree = ast.parse(text.strip().replace("@", f".{_AT}."), mode="eval").body
        except SyntaxError as error:
            raise InputError(f"formula '{text}': {error.msg}", _REMEDY) from None
        spread_of = _spread_of(tree)
        formula = Formula(text, spread_of or tree, metric, it, spread_of is not None)
        formula._check(formula.tree)
        return formula

    @property
    def references(self) -> frozenset[Reference]:
        """All measured numbers that the formula uses."""
        return frozenset(name for name in self._names(self.tree) if isinstance(name, Reference))

    @property
    def only(self) -> Reference | None:
        """The measured number, if the formula consists of nothing else; otherwise None."""
        is_name = isinstance(self.tree, ast.Attribute) and not self.is_spread
        name = self.name_of(self.tree) if is_name else None
        return name if isinstance(name, Reference) else None

    @property
    def constants(self) -> frozenset[str]:
        """All constants that the formula uses."""
        return frozenset(name for name in self._names(self.tree) if isinstance(name, str))

    def value(self, numbers: Mapping[Reference, float], constants: Mapping[str, float]) -> float:
        """Evaluate the formula. Raises ZeroDivisionError if a divisor is zero."""
        return self._value(self.tree, numbers, constants)

    def _value(
        self, node: ast.expr, numbers: Mapping[Reference, float], constants: Mapping[str, float]
    ) -> float:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            return float(node.value)
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](
                self._value(node.left, numbers, constants),
                self._value(node.right, numbers, constants),
            )
        if isinstance(node, ast.Call):
            return _FUNCTIONS[ast.unparse(node.func)](
                [self._value(argument, numbers, constants) for argument in node.args]
            )
        name = self.name_of(node)
        return numbers[name] if isinstance(name, Reference) else constants[name]

    def _names(self, node: ast.expr) -> Iterator[Reference | str]:
        if isinstance(node, ast.BinOp):
            yield from self._names(node.left)
            yield from self._names(node.right)
        elif isinstance(node, ast.Call):
            for argument in node.args:
                yield from self._names(argument)
        elif not isinstance(node, ast.Constant):
            yield self.name_of(node)

    def name_of(self, node: ast.expr) -> Reference | str:
        """Return the measured number or constant that a name in the formula's tree refers to."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        disk = ""
        if parts[:1] == [_AT]:
            parts.insert(0, "total")
        if _AT in parts[1:2]:
            disk = "".join(parts[2:3]) or _AT
            del parts[1:3]
        if not isinstance(node, ast.Name) or len(parts) > 2 or _AT in (*parts, disk):
            raise InputError(
                f"formula '{self.text}': '{ast.unparse(node).replace(f'.{_AT}.', '@')}' is not"
                " allowed",
                _REMEDY,
            )
        if not parts:
            return node.id
        profile = self.it if self.it and node.id == "it" else node.id
        return Reference(
            profile, parts[0].replace("_", "-"), parts[1] if len(parts) == 2 else self.metric, disk
        )

    def _check(self, node: ast.expr) -> None:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            self._check(node.left)
            self._check(node.right)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in _FUNCTIONS
            and len(node.args) > 1
            and not node.keywords
        ):
            for argument in node.args:
                self._check(argument)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
                raise InputError(f"formula '{self.text}': {node.value!r} is not a number", _REMEDY)
        else:
            self.name_of(node)


def _spread_of(tree: ast.expr) -> ast.expr | None:
    """Return the formula inside `spread(…)`; None for any other formula."""
    if not isinstance(tree, ast.Call) or ast.unparse(tree.func) != _SPREAD:
        return None
    return tree.args[0] if len(tree.args) == 1 and not tree.keywords else None
