"""`fscost man`: manual pages, generated from the same texts as `--help`."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Annotated, Any

import typer

from fscost.cli import app as program
from fscost.cli.app import COMMANDS, EPILOG, command
from fscost.cli.help import first_paragraph, panels
from fscost.errors import InputError, did_you_mean

PROGRAM = "fscost"


def man(
    name: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND…", help="Command to describe; omit it for fscost itself."),
    ] = None,
) -> None:
    """Show a command's manual page; to a pipe or file, print its man(7) source.

    fscost man compare >fscost-compare.1
    """
    text = page(tuple(name or ()))
    if sys.stdout.isatty() and shutil.which("man") is not None:
        subprocess.run(["man", "-l", "-"], input=text.encode(), check=False)
        return
    sys.stdout.write(text)


def page(names: tuple[str, ...]) -> str:
    """Return the manual page of a command, as man(7) source."""
    found = _found(names)
    title = "-".join((PROGRAM, *names))
    context = found.make_context(
        " ".join((PROGRAM, *names)), [], resilient_parsing=True, help_option_names=["-h", "--help"]
    )
    summary, *paragraphs = (found.help or "").split("\n\n")
    lines = [
        f'.TH {title.upper()} 1 "" "{PROGRAM} {version(PROGRAM)}" "{PROGRAM} manual"',
        ".SH NAME",
        f"{_text(title)} \\- {_text(_joined(summary))}",
        ".SH SYNOPSIS",
        f".B {_text(context.command_path)}",
        _text(" ".join(found.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        _text(_joined(summary)),
    ]
    for paragraph in paragraphs:
        example = paragraph.strip().startswith(f"{PROGRAM} ")
        lines += [".PP", ".RS 4\n.nf" if example else "", _text(_joined(paragraph))]
        lines += [".fi\n.RE"] if example else []
    lines += [*_parameters(found, context), *_commands(found, names)]
    lines += [".SH EXIT STATUS", _text(EPILOG.removeprefix("Exit status: "))]
    lines += [".SH SEE ALSO", *_see_also(found, names)]
    return "\n".join(filter(None, lines)) + "\n"


def _found(names: tuple[str, ...]) -> Any:
    if not names:
        return typer.main.get_command(program.app)
    first, *rest = names
    known = list(COMMANDS)
    found = command(first) if first in COMMANDS else None
    for each in rest:
        known = list(getattr(found, "commands", {}))
        found = getattr(found, "commands", {}).get(each)
    if found is None:
        raise InputError(
            f"there is no command {' '.join(names)!r}",
            did_you_mean(names[-1], known)
            or (f"commands: {', '.join(known)}" if known else "it has no subcommands"),
        )
    return found


def _parameters(found: Any, context: Any) -> Iterator[str]:
    for panel, records in panels(found, context).items():
        yield f".SH {panel.upper()}"
        for term, meaning in records:
            yield from (".TP", f".B {_text(term)}", _text(meaning))


def _commands(found: Any, names: tuple[str, ...]) -> Iterator[str]:
    below = getattr(found, "commands", {})
    if below:
        yield ".SH COMMANDS"
    for name in below:
        summary = COMMANDS[name] if not names else first_paragraph(below[name].help)
        yield from (".TP", f".B {_text(name)}", _text(summary))


def _see_also(found: Any, names: tuple[str, ...]) -> Iterator[str]:
    below = [f"{'-'.join((PROGRAM, *names, each))}" for each in getattr(found, "commands", {})]
    above = ["-".join((PROGRAM, *names[:-1]))] if names else []
    yield ",\n".join(f".BR {_text(each)} (1)" for each in (*above, *below))


def _joined(text: str) -> str:
    return " ".join(text.split())


def _text(text: str) -> str:
    """Escape a line, so that man reads it as text without requests or escapes."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in escaped)
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
