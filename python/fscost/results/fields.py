"""Reader for untrusted JSON: every field is checked, and every error names the file and the
field."""

import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from fscost.errors import InputError

REMEDY = (
    "the file was changed or damaged: run the comparison again, or restore the file from a copy"
)


class Fields:
    """A JSON object from `file`; `where` is its location in the file."""

    def __init__(self, file: Path, value: Any, where: str = "") -> None:
        self.file = file
        self._where = where
        if not isinstance(value, dict):
            raise InputError(f"{file}: {where or 'its content'} is not a JSON object", REMEDY)
        self._value = value

    def wrong(self, name: str, what: str, remedy: str = REMEDY) -> InputError:
        """Return the error for a field."""
        return InputError(f"{self.file}: {self._path(name)} {what}", remedy)

    def plain(self) -> dict[str, Any]:
        """Return the object itself."""
        return self._value

    def text(self, name: str, default: str | None = None) -> str:
        """Read a string."""
        value = self._value.get(name, default) if default is not None else self._get(name)
        if not isinstance(value, str):
            raise self.wrong(name, f"is {_kind(value)}, not a string")
        return value

    def integer(self, name: str) -> int:
        """Read a whole number that fits 64 bits."""
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, f"is {_kind(value)}, not a whole number")
        if not -(1 << 63) <= value < 1 << 63:
            raise self.wrong(name, "does not fit 64 bits")
        return value

    def number(self, name: str) -> float:
        """Read a finite number."""
        value = self._get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self.wrong(name, f"is {_kind(value)}, not a number")
        if not math.isfinite(value):
            raise self.wrong(name, f"is {value}, not a finite number")
        return float(value)

    def object(self, name: str) -> dict[str, Any]:
        """Read a JSON object without checking its fields."""
        value = self._get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, f"is {_kind(value)}, not an object")
        return value

    def objects(self, name: str) -> list["Fields"]:
        """Read a list of JSON objects."""
        return [
            Fields(self.file, entry, f"{self._path(name)}[{index}]")
            for index, entry in enumerate(self._list(name))
        ]

    def texts(self, name: str) -> list[str]:
        """Read a list of strings."""
        values = self._list(name)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.wrong(f"{name}[{index}]", f"is {_kind(value)}, not a string")
        return values

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """Read a string that must be one of `allowed`."""
        value = self.text(name)
        if value not in allowed:
            raise self.wrong(name, f"is {value!r}, not one of {', '.join(allowed)}")
        return value

    def inside(self, name: str) -> str:
        """Read a path that stays inside the run's folder; it may be empty."""
        return self._inside(name, self.text(name))

    def text_by_path(self, name: str) -> dict[str, str]:
        """Read strings keyed by paths that stay inside the run's folder; empty if the field is
        missing."""
        found = Fields(self.file, self._value.get(name, {}), self._path(name))
        return {self._inside(name, path): found.text(path) for path in found.plain()}

    def _inside(self, name: str, value: str) -> str:
        path = PurePosixPath(value)
        if path.is_absolute() or ".." in path.parts or "\0" in value:
            raise self.wrong(name, f"is {value!r}, which leads out of the run's folder")
        return value

    def _list(self, name: str) -> list[Any]:
        value = self._get(name)
        if not isinstance(value, list):
            raise self.wrong(name, f"is {_kind(value)}, not a list")
        return value

    def _get(self, name: str) -> Any:
        if name not in self._value:
            raise self.wrong(name, "is missing")
        return self._value[name]

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name


def _kind(value: Any) -> str:
    names = {
        type(None): "null",
        bool: "true or false",
        str: "a string",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "something else")
