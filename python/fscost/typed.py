"""Validator for untrusted JSON and TOML values. Dataclasses describe the values, pydantic checks
them, and the first error is phrased like fscost's own."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from inspect import signature
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, Strict, ValidationError

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails
    from pydantic_core.core_schema import CoreSchema

T = TypeVar("T")
Int64 = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""Kernel counters have 64 bits; larger numbers are damage."""
FAIL_FAST = Field(fail_fast=True)
"""Annotation that ends at the first error. Without it, a hostile list of a million wrong values
would become a million errors."""
List = Annotated[list[T], FAIL_FAST]
Dict = Annotated[dict[str, T], FAIL_FAST]
Tuple = Annotated[tuple[T, ...], Strict(strict=False), FAIL_FAST]
"""List in the file; pydantic's strict mode accepts only tuples."""

_NAMES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "dataclass_type": "an object",
    "model_type": "an object",
}
"""Expected types, by pydantic's error."""
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_BOUNDS = {
    "greater_than": ("gt", "is not more than"),
    "greater_than_equal": ("ge", "is less than"),
    "less_than": ("lt", "is not less than"),
}
_KINDS = {
    type(None): "null",
    bool: "true or false",
    str: "a string",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}
_SHOWN_CHARACTERS = 80
_MOST_PARTS = 16
_LONG_KEY = re.compile(
    r"""(?<![\w\\-])(?:(?:[\w-]++|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    f"{{{_MOST_PARTS}}}"
)
"""More parts of a dotted key than any of fscost's files has. The quantifiers never backtrack. No
key begins after a backslash: few of the quotes in a string can begin a part, and the search from
each of them ends at the next one."""


class Table:
    """Base of dataclasses that describe an object of a file. A field with a default may be missing,
    and unknown fields are ignored. Types are strict: 1 is neither "1", true nor 1.0."""

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> "CoreSchema":
        """Accept a dict. Strict mode, which applies to the fields, would accept only instances."""
        return {**handler(source), "strict": False}


class ClosedTable(Table):
    """Base like `Table`, but unknown fields are refused."""

    __pydantic_config__ = ConfigDict(**{**Table.__pydantic_config__, "extra": "forbid"})


class InvalidError(Exception):
    """Error for a value: its place, such as `cells[0].profile` (empty: the whole value), and what
    is wrong with it, such as `is missing`. `known`: for an unknown field, those that exist."""

    def __init__(self, place: str, what: str, known: Sequence[str] = ()) -> None:
        fields = f"; there are {', '.join(known)}"
        super().__init__(
            f"{place}: {what}{fields}" if known else f"{place or 'its content'} {what}"
        )
        self.place = place
        self.what = what
        self.known = known


def read(kind: type[T], value: object, place: str = "") -> T:
    """Check a value against a type and return the instance; InvalidError names the first wrong
    field. `place` is the location of the value."""
    try:
        found: T = _adapter(kind).validate_python(value)  # type: ignore[arg-type]  # a type is hashable
        return found
    except ValidationError as error:
        errors = error.errors(include_url=False)
    # Report a misspelt field first: its correct spelling is missing as well.
    first = next((each for each in errors if each["type"] in _UNKNOWN), errors[0])
    if first["type"] in _UNKNOWN:
        known = _fields(kind, first["loc"])
        raise InvalidError(_place(place, first["loc"]), "no such field", known)
    raise InvalidError(_place(place, first["loc"]), _what(first))


def toml(text: str) -> dict[str, Any]:
    """Parse TOML of a stranger; ValueError for anything that is not TOML, or would take too long:
    tomllib's time grows with the square of the parts of a dotted key."""
    if (found := _LONG_KEY.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a dotted key of more than {_MOST_PARTS} parts (at line {line})")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _place(place: str, parts: tuple[int | str, ...]) -> str:
    if parts[-1:] == ("[key]",):
        parts = parts[:-2]
    for part in parts:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += f".{part if part.isprintable() else repr(part)}"[:_SHOWN_CHARACTERS]
    return place.removeprefix(".")


def _fields(kind: Any, place: tuple[int | str, ...]) -> list[str]:
    """List the fields of the table that has an unknown field at this place."""
    for part in place[:-1]:
        hints = get_type_hints(kind) if isinstance(kind, type) else {}
        kind = hints.get(str(part)) or get_args(kind)[get_origin(kind) is dict]
        if get_origin(kind) in (Union, UnionType):
            kind = get_args(kind)[0]
    return list(signature(kind).parameters)


def _what(error: "ErrorDetails") -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "float_type" and type(error["input"]) is int:  # One beyond the largest float.
        kind = "finite_number"
    if kind in _NAMES:
        return f"is {_KINDS.get(type(error['input']), 'something else')}, not {_NAMES[kind]}"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        limit = context[key]
        return "does not fit 64 bits" if abs(limit) == 1 << 63 else f"{words} {limit:.15g}"
    match kind:
        case "missing":
            return "is missing"
        case "string_too_short" | "too_short":
            return "is empty"
        case "too_long":
            return f"has more than {error['ctx']['max_length']} entries"
        case "string_unicode":
            return "holds a string or name that is not valid Unicode"
        case "finite_number":
            return "is not a finite number"
        case "literal_error":
            return f"is {_shown(error['input'])}, not {context['expected']}"
        case "value_error":
            return str(context["error"])
    return f"cannot be used: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_SHOWN_CHARACTERS])
    is_short = type(value) is float or (type(value) is int and value.bit_length() < 64)
    return repr(value) if is_short else _KINDS.get(type(value), "something else")
