"""The commands, and what becomes of an error: one clear message and exit 2, never a traceback."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from fscost.cli import compare, doctor, explain, profiles, recording, show, study, workloads
from fscost.cli.output.grid import plain
from fscost.errors import FscostError, HostError

READER_GONE = 141
"""What a shell says of a program that SIGPIPE ended."""
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""What writing to a file that is open can fail with (write(2)); an error about a file that fscost opened by itself names that file."""


class _Commands(TyperGroup):
    """Where nobody reads any more (`fscost profiles | head`), typer would exit 1, as if something had failed."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _until_the_reader_goes():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _until_the_reader_goes():
            return super().invoke(ctx)


@contextlib.contextmanager
def _until_the_reader_goes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise typer.Exit(READER_GONE) from None
    except SystemExit as ending:
        # rich, which prints help, exits 1 by itself (`Console.on_broken_pipe`).
        if isinstance(ending.__context__, BrokenPipeError):
            raise typer.Exit(READER_GONE) from None
        raise


app = typer.Typer(
    name="fscost",
    cls=_Commands,
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
        _give_up_output()
        sys.exit(READER_GONE)
    except OSError as error:
        if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
            raise
        _give_up_output()
        print(f"fscost: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(HostError.exit_code)


def _give_up_output() -> None:
    """Python would write what is left once more when it ends (docs.python.org, signal, "Note on SIGPIPE")."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _forgive(stream: TextIO | object) -> None:
    """A terminal without × and – gets a question mark, not a traceback."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
