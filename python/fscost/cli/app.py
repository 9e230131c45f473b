"""The commands, and what becomes of an error: one clear message and exit 2, never a traceback."""

import os
import sys
from typing import TextIO

import typer

from fscost.cli import compare, doctor, explain, profiles, recording, show, study, workloads
from fscost.cli.output.view import plain
from fscost.errors import FscostError

app = typer.Typer(
    name="fscost",
    help="What a file system and its options really cost: bytes to the device, time, CPU, space.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(compare.compare)
app.command()(show.show)
app.command()(explain.explain)
app.command()(profiles.profiles)
app.command()(workloads.workloads)
app.command()(doctor.doctor)
app.add_typer(study.app)
app.add_typer(recording.app, name="recording")


def main() -> None:
    """The entry point `fscost`."""
    for stream in (sys.stdout, sys.stderr):
        _forgive(stream)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except FscostError as error:
        print(f"fscost: {plain(str(error))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("fscost: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # `fscost profiles | head`: nobody reads any more. Python would find that out once more when it ends (docs.python.org, signal, "Note on SIGPIPE").
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _forgive(stream: TextIO | object) -> None:
    """A terminal without × and – gets a question mark, not a traceback."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
