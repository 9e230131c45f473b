"""Options of a built-in workload: declared in its data file, given as text, and checked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import SkipValidation

from fscost import typed
from fscost.errors import InputError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BYTES = re.compile(r"(\d+)([kmg]?)(?:i?b)?", re.IGNORECASE)
_CEILING = 1 << 50

Value = str | int


@dataclass(frozen=True)
class Option(typed.ClosedTable):
    """One option of a built-in workload.

    `scaled`: its default follows the scale. `grows`: the disk size and bytes written of a cell are
    proportional to it. `disk_mib` and `write_mib`: amounts that each unit of the option adds to
    these.
    """

    kind: Literal["count", "bytes", "choice", "shell"]
    default: Annotated[Value, SkipValidation]
    """Checked by `read`."""
    summary: typed.Text
    scaled: bool = False
    grows: bool = False
    minimum: int = 1
    choices: typed.Tuple[typed.Text] = ()
    disk_mib: int = 0
    write_mib: int = 0

    def at_scale(self, scale: float) -> Value:
        """Return the default at this scale."""
        if self.scaled and isinstance(self.default, int):
            return max(self.minimum, round(self.default * scale))
        return self.default

    def read(self, name: str, text: Value) -> Value:
        """Parse a value given by the user; InputError if it is invalid."""
        if self.kind == "shell":
            return self._command(name, str(text))
        if self.kind == "choice":
            if text not in self.choices:
                raise self._refusal(name, text, f"one of {', '.join(self.choices)}")
            return str(text)
        number = _number(str(text), self.kind)
        if number is None or not self.minimum <= number <= _CEILING:
            form = "a size such as 4096, 4k or 1M" if self.kind == "bytes" else "a whole number"
            raise self._refusal(name, text, f"{form}, at least {self.minimum}")
        return number

    def _command(self, name: str, text: str) -> str:
        if not text.strip() or not all(c.isprintable() for c in text):
            raise self._refusal(name, text, "a shell command on one line")
        return text

    def _refusal(self, name: str, text: Value, form: str) -> InputError:
        return InputError(
            f"option {name}={text}: not {form}",
            f"give {form}; {name}: {self.summary} (default {self.default})",
        )


def _number(text: str, kind: str) -> int | None:
    match = _BYTES.fullmatch(text) if kind == "bytes" else re.fullmatch(r"(\d+)()", text)
    return (
        int(match[1]) * _UNITS[match[2].lower()]
        if match and len(match[1]) < 20 and match[1].isascii()
        else None
    )


def read_options(
    workload: str, declared: Mapping[str, Option], given: Mapping[str, Value], scale: float
) -> dict[str, Value]:
    """Return the value of every declared option: the given one, or its default at this scale."""
    for name in given:
        if name not in declared:
            remedy = f"it has {', '.join(declared)}" if declared else "it has no options"
            raise InputError(f"workload '{workload}' has no option '{name}'", remedy)
    return {
        name: option.read(name, given[name]) if name in given else option.at_scale(scale)
        for name, option in declared.items()
    }


def growth(declared: Mapping[str, Option], values: Mapping[str, Value]) -> float:
    """Return the factor by which the volume of these values exceeds that of the defaults at scale
    1."""
    factor = 1.0
    for name, option in declared.items():
        value = values[name]
        if option.grows and isinstance(value, int) and isinstance(option.default, int):
            factor *= value / option.default
    return factor


def added_mib(declared: Mapping[str, Option], values: Mapping[str, Value]) -> tuple[int, int]:
    """Return the MiB that the values add to the disk size and to the bytes written, in
    addition to the growth."""
    counts = [
        (option, value)
        for name, option in declared.items()
        if isinstance(value := values[name], int)
    ]
    return sum(option.disk_mib * value for option, value in counts), sum(
        option.write_mib * value for option, value in counts
    )
