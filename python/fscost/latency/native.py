"""The native module, as this room uses it."""

from fscost import _native
from fscost.errors import InputError

Described = tuple[str, str, float | None, float, float]
"""A parameter: name, meaning, default, smallest and largest value."""


def check(file: str, text: str) -> None:
    """Refuse a device file whose section [latency] is wrong."""
    try:
        _native.latency_check(file, text)
    except ValueError as error:
        what, _, remedy = str(error).partition("; ")
        raise InputError(what, remedy or "see docs/time.md, Models") from None


def parameters(kind: str) -> list[Described]:
    """The parameters of a kind of model."""
    return _native.latency_parameters(kind)
