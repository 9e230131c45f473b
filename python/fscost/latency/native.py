"""Access to the latency functions of the native module."""

from fscost import _native
from fscost.errors import InputError

Described = tuple[str, str, float | None, float, float]
"""A parameter: name, meaning, default, smallest and largest value."""


def check(file: str, text: str) -> None:
    """Raise InputError if the section [latency] of a device file is invalid."""
    try:
        _native.latency_check(file, text)
    except ValueError as error:
        what, _, remedy = str(error).partition("; ")
        raise InputError(what, remedy or "see docs/time.md, Models") from None


def parameters(kind: str) -> list[Described]:
    """Return the parameters of a kind of model."""
    return _native.latency_parameters(kind)
