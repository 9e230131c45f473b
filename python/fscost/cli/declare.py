"""Options of a command, declared as the fields of a dataclass."""

from collections.abc import Callable, Iterator
from dataclasses import field, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

_OPTION = "option"


def option(*names: str, default: Any = None, **about: Any) -> Any:
    """Declare a field that is an option. `names` and `about` are arguments of `typer.Option`."""
    return field(default=default, metadata={_OPTION: typer.Option(*names, **about)})


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the command's last parameter, a dataclass, with the fields of that dataclass. Typer
    reads parameters from the signature, and passes each by name."""
    *own, options = signature(command).parameters.values()

    @wraps(command)
    def called(**values: Any) -> None:
        command(*(values.pop(each.name) for each in own), options.annotation(**values))

    vars(called)["__signature__"] = Signature([*own, *_parameters(options.annotation)])
    return called


def _parameters(options: Any) -> Iterator[Parameter]:
    found = signature(options).parameters
    for each in fields(options):
        parameter = found[each.name]
        if declared := each.metadata.get(_OPTION):
            parameter = parameter.replace(annotation=Annotated[each.type, declared])
        yield parameter
