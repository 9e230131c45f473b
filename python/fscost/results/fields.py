"""Reader for untrusted JSON: every field is checked, and every error names the file and the
field."""

import sys
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, get_args, get_origin

from fscost.errors import InputError

REMEDY = (
    "the file was changed or damaged: run the comparison again, or restore the file from a copy"
)
PathInside = Annotated[str, "inside"]
"""Path that stays inside the run's folder; it may be empty."""
OPTIONAL = {"is_optional": True}
"""Metadata of a field that may be missing."""
_JSON_TYPES: dict[Any, tuple[type | tuple[type, ...], str]] = {
    str: (str, "a string"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    dict: (dict, "an object"),
    list: (list, "a list"),
}
"""Types that a value has after JSON was parsed, by the type of the field, and their name."""


def wrong(file: Path, place: str, what: str, remedy: str = REMEDY) -> InputError:
    """Return the error for a field."""
    return InputError(f"{file}: {place} {what}", remedy)


def read(kind: Any, value: Any, file: Path, place: str = "") -> Any:
    """Read a value as `kind`: a dataclass, or a type of a field of one. `place` is its location in
    the file."""
    if isinstance(kind, type) and is_dataclass(kind):
        _check_object(value, file, place)
        return kind(**_values(kind, value, file, f"{place}." if place else ""))
    base, inner = get_origin(kind) or kind, get_args(kind)
    if base is Literal:
        if read(str, value, file, place) not in inner:
            raise wrong(file, place, f"is {value!r}, not one of {', '.join(inner)}")
        return value
    if kind == PathInside:
        path = PurePosixPath(read(str, value, file, place))
        if path.is_absolute() or ".." in path.parts or "\0" in value:
            raise wrong(file, place, f"is {value!r}, which leads out of the run's folder")
        return value
    if kind == dict[PathInside, str]:
        _check_object(value, file, place)
        return {
            read(PathInside, path, file, place): read(str, text, file, f"{place}.{path}")
            for path, text in value.items()
        }
    type_, name = _JSON_TYPES[base]
    is_of_type = isinstance(value, type_) and not isinstance(value, bool)
    if not is_of_type:
        raise wrong(file, place, f"is {_kind(value)}, not {name}")
    if base is int and not -(1 << 63) <= value < 1 << 63:
        raise wrong(file, place, "does not fit 64 bits")
    if base is float:
        if not abs(value) <= sys.float_info.max:  # Also compares huge integers.
            raise wrong(file, place, "is not a finite number")
        return float(value)
    if base is list:
        return _entries(inner[0], value, file, place)
    return value


def _values(kind: Any, value: dict[str, Any], file: Path, prefix: str) -> dict[str, Any]:
    found = {}
    for field in fields(kind):
        if field.name in value:
            found[field.name] = read(field.type, value[field.name], file, prefix + field.name)
        elif field.metadata != OPTIONAL:
            raise wrong(file, prefix + field.name, "is missing")
    return found


def _entries(kind: Any, values: list[Any], file: Path, place: str) -> list[Any]:
    for index, value in enumerate(values if kind is not str else ()):
        _check_object(value, file, f"{place}[{index}]")
    return [read(kind, value, file, f"{place}[{index}]") for index, value in enumerate(values)]


def _check_object(value: Any, file: Path, place: str) -> None:
    if not isinstance(value, dict):
        raise wrong(file, place or "its content", "is not a JSON object")


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
