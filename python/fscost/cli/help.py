"""Help as plain text.

Typer's own help imports rich, whose Markdown parser alone takes a third of `fscost --help`.
"""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

_GAP = 2
_TYPE = re.compile(r" <[A-Za-z\[\]]+>$")
PAIRS = ("-L", "--parameter-list", "-P", "--parameter-range")
"""Options that take two arguments."""


class _Help:
    """Commands whose --help has a default. Typer converts the value of an option without one, and
    imports pydantic for that, which takes longer than the rest of `fscost compare --help`."""

    def get_help_option(self, ctx: Any) -> Any:
        found = super().get_help_option(ctx)  # type: ignore[misc]
        if found is not None:
            found.default = False
        return found


class Command(_Help, TyperCommand):
    """A command whose options are listed by panel."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "rich_markup_mode": None})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, with `-L NAME VALUES` as one value of two words. Typer has no lists
        of pairs."""
        return super().parse_args(ctx, _with_pairs_joined(args))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments first, then the options of each panel in order of declaration."""
        _list_parameters(self, ctx, formatter)


class Group(_Help, TyperGroup):
    """A command with subcommands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "rich_markup_mode": None})

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List options, then commands with the first paragraph of their help."""
        _list_parameters(self, ctx, formatter)
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, first_paragraph(found.help))
                    for name, found in commands
                    if found is not None
                ],
                col_spacing=_GAP,
            )


def _with_pairs_joined(args: list[str]) -> list[str]:
    own = args[: args.index("--")] if "--" in args else args
    found, rest = list[str](), list(own)
    while rest:
        found.append(rest.pop(0))
        if found[-1] in PAIRS and len(rest) > 1 and "=" not in rest[0]:
            found.append(f"{rest.pop(0)}={rest.pop(0)}")
    return [*found, *args[len(own) :]]


def panels(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the arguments and options with their meanings, by panel title."""
    found: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        is_option = parameter.param_type_name == "option"
        panel = getattr(parameter, "rich_help_panel", None) or (
            "Options" if is_option else "Arguments"
        )
        if (record := parameter.get_help_record(ctx)) is not None:
            term, meaning = record
            # `SUITE <Path>`: the Python type adds nothing to the name.
            found.setdefault(panel, []).append((_TYPE.sub("", term), meaning))
    return found


def _list_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    for panel, records in panels(command, ctx).items():
        with formatter.section(panel):
            formatter.write_dl(records, col_spacing=_GAP)


def first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())
