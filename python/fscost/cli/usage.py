"""Usage errors of commands and options, in the format of all other errors.

Typer checks options before any fscost code runs. Its own messages have another format and quote
pydantic.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from fscost.cli.help import Group
from fscost.errors import FscostError, InputError, did_you_mean

READER_GONE = 141
"""Exit status that a shell reports for a program killed by SIGPIPE."""

_NOT_A_NUMBER = {
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is not a whole number of at most 64 bits",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
}
_OUT_OF_RANGE = {
    "greater_than_equal": ("ge", "is too small", "give at least"),
    "less_than_equal": ("le", "is too large", "give at most"),
}
_OTHER_NAMES = {
    "--runs": "--min-repetitions and --max-repetitions",
    "--repetitions": "--min-repetitions and --max-repetitions",
}
"""Options of similar tools, and their names in fscost."""


def some_path(text: str) -> Path:
    """Parse a path. An empty path is refused, because it would be the working directory."""
    if not text:
        raise InputError("'' is not a path", "name a file or a folder")
    return Path(text)


def run_path(text: str) -> Path:
    """Parse the path of a run's folder or a recording.

    A symbolic link to an entry of its own folder, such as `latest`, is replaced by its target.
    """
    path = some_path(text)
    if path.is_symlink():
        target = path.readlink()
        if len(target.parts) == 1 and target.name:
            return path.with_name(target.name)
    return path


class Interrupted(Exception):  # noqa: N818  # No error: it carries Ctrl-C or another signal.
    """Carrier of a KeyboardInterrupt out of a command. Typer would end the program with status 130
    and without a word, whatever the signal was."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        super().__init__()
        self.interrupt = interrupt


class Commands(Group):
    """Group of commands with fscost's error for an unknown command.

    The group exits quietly when its reader closes the pipe (`fscost profiles | head`).
    """

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _until_the_reader_goes():
            return super().make_context(*arguments, **options)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            remedy = did_you_mean(args[0], known) or f"commands: {', '.join(known)}"
            raise InputError(
                f"unknown command {args[0]!r}", f"{remedy} (`{ctx.command_path} --help` lists all)"
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _until_the_reader_goes():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as interrupt:
                raise Interrupted(interrupt) from None


def group(summary: str) -> typer.Typer:
    """Return a command whose subcommands are declared on it."""
    return typer.Typer(
        cls=Commands,
        help=summary,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
    )


@contextlib.contextmanager
def _until_the_reader_goes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise typer.Exit(READER_GONE) from None


def explained(error: Any) -> FscostError | None:
    """Translate a typer error into an fscost error. Return None if help was printed instead."""
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":
        print(error.message, file=sys.stderr)
        return None
    program = error.ctx.command_path if getattr(error, "ctx", None) is not None else "fscost"
    see = f"`{program} --help` lists its arguments and options"
    if kind == "NoSuchOption":
        name = error.option_name
        close = _OTHER_NAMES.get(name) or " or ".join(error.possibilities or ())
        return InputError(
            f"unknown option {name}", f"did you mean {close}? ({see})" if close else see
        )
    if kind == "MissingParameter":
        return InputError(f"{_name(error.param)} is missing", _choices(error.param) or see)
    if kind == "BadOptionUsage":
        needs = "takes no value" if "does not take" in error.message else "needs a value"
        return InputError(f"{error.option_name} {needs}", see)
    if kind == "BadParameter":
        return _bad_value(error, see)
    text = error.message.rstrip(".")
    _, found, extra = text.partition("unexpected extra argument(s) (")
    return InputError(
        f"unexpected argument {extra[:-1]!r}" if found else text[:1].lower() + text[1:], see
    )


def _bad_value(error: Any, see: str) -> InputError:
    name = "the value" if error.param is None else _name(error.param)
    details: Mapping[str, Any] = (
        error.__cause__.errors()[0] if hasattr(error.__cause__, "errors") else {}
    )
    given, problem = details.get("input", ""), details.get("type", "")
    if isinstance(given, (list, tuple)):
        given = next((each for each in given if isinstance(each, str)), "")
    if problem in _NOT_A_NUMBER:
        return InputError(f"{name} {given!r} {_NOT_A_NUMBER[problem]}", see)
    if problem in _OUT_OF_RANGE:
        bound, what, remedy = _OUT_OF_RANGE[problem]
        return InputError(f"{name} {given} {what}", f"{remedy} {details['ctx'][bound]}")
    if (choices := _choices(error.param)) is not None:
        return InputError(
            f"{name} {given!r} is unknown",
            choices if not given else did_you_mean(given, _values(error.param)) or choices,
        )
    return InputError(f"{name} {given!r} cannot be used", see)


def _name(parameter: Any) -> str:
    """Return the name of a parameter: `--scale` for an option, `RUN` for an argument."""
    option = max(parameter.opts, key=len, default="")
    return option if option.startswith("-") else parameter.metavar or option.upper()


def _choices(parameter: Any) -> str | None:
    values = _values(parameter)
    return f"one of: {', '.join(values)}" if values else None


def _values(parameter: Any) -> list[str]:
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    return (
        [str(each.value) for each in kind]
        if isinstance(kind, type) and issubclass(kind, Enum)
        else []
    )
