"""Options of a command, declared as the fields of a dataclass."""

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import Any


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the command's last parameter, a dataclass, with the fields of that dataclass. Typer
    reads parameters from the signature, and passes each by name."""
    *own, options = signature(command).parameters.values()

    @wraps(command)
    def called(**values: Any) -> None:
        command(*(values.pop(each.name) for each in own), options.annotation(**values))

    declared = [*own, *signature(options.annotation).parameters.values()]
    vars(called)["__signature__"] = Signature(declared)
    return called
