"""The commands, and what becomes of an error: one clear message and exit 2, never a traceback."""

import errno
import os
import resource
import signal
import sys
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer
from typer.exceptions import TyperException

from fscost.cli.help import Command
from fscost.cli.usage import READER_GONE, Commands, explained
from fscost.errors import FscostError, HostError, Terminated
from fscost.view.grid import plain

TERMINATED = 143
"""Exit status that a shell reports for a program that SIGTERM ended."""
_LONGEST_PATH = 200
"""Longest path in a message: one that is too long for the kernel would fill the screen."""

LEAST_ADDRESS_SPACE_BYTES = 1 << 30
COMPLETE = "_FSCOST_COMPLETE"
"""Set by a shell that asks for completions (`fscost completion`)."""
EPILOG = (
    "Exit status: 0 done; 1 a cell failed, or a file is damaged; 2 wrong use, or nothing could "
    "run; 130 interrupted, 143 terminated: finished cells are kept."
)
HELP = {"help_option_names": ["-h", "--help"]}
"""Both spellings, as in other tools; click passes the setting on to subcommands."""

COMMANDS = {
    "compare": "Measure what file systems cost for a workload, and compare them.",
    "run": "Run the workloads of a suite file (fscost.toml), and relate them.",
    "show": "Print the tables of a finished run again, in any form.",
    "diff": "Compare several runs: each profile in each run, and the ratio to the first run.",
    "ls": "List the runs in a folder, with the answer of each.",
    "report": "Write one HTML file with the answers, charts and tables of a run.",
    "serve": "Show the runs of a folder as a small site on this machine.",
    "plot": "Draw one chart of a run as PNG, SVG or HTML.",
    "explain": "Say what each written byte was: structure, cause, file.",
    "wear": "Estimate the wear that recorded writes cause on an SSD, a card or an eMMC.",
    "replay": "Estimate how long a disk, a card or an SSD would have taken for recorded requests.",
    "devices": "List the devices whose wear and latency are modelled, with the source of each number.",
    "calibrate": "Measure a block device with fio, and write its model as TOML.",
    "profiles": "List the profiles that have a name of their own, one line each.",
    "workloads": "List the built-in workloads, or show the options and steps of one.",
    "doctor": "Look at what the labs need; exit 2 when no cell can run here in either.",
    "schema": "Print the JSON Schema of suite files, or of a command's --json output.",
    "completion": 'Print the completion script of a shell: eval "$(fscost completion bash)".',
    "man": "Show the manual page of a command; into a pipe or file, print its source for man.",
    "study": "Published experiments, run again: published beside measured, a verdict for each claim.",
    "recording": "Look into a recording, or take it elsewhere.",
}
"""Each command, a module of this package, and the first line of its help."""


class _Program(Commands):
    """Imports the module of the one command that runs: all of them together take a second."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, summary in COMMANDS.items():
            self.add_command(Command(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else command(str(found.name)), rest


app = typer.Typer(
    name="fscost",
    cls=_Program,
    help="What a file system and its options really cost: bytes to the device, time, CPU, space.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    epilog=EPILOG,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"fscost {version('fscost')}")
        raise typer.Exit


@app.callback()
def _fscost(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    pass


def command(name: str) -> Any:
    """One of the commands; its module is imported now."""
    module = import_module(f"fscost.cli.{name}")
    found = getattr(module, "app", None)
    if found is None:
        found = typer.Typer(add_completion=False)
        found.command(name, cls=Command)(getattr(module, name))
    return typer.main.get_command(found)


def _check_memory_limit() -> None:
    """HostError below what loading the libraries takes: OpenBLAS ends the process by itself, and
    Arrow's threads wait for ever."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE_BYTES:
        raise HostError(
            f"fscost cannot start: its address space is limited to {limit >> 20} MiB of memory",
            f"raise the limit: `ulimit -v {LEAST_ADDRESS_SPACE_BYTES >> 10}` or more",
        )


def main() -> None:
    """The entry point `fscost`."""
    _open_missing_streams()
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        _forgive(stream)
    if COMPLETE in os.environ:
        import_module("fscost.cli.completion").prepare()
    try:
        _check_memory_limit()
        try:
            code = app(prog_name="fscost", standalone_mode=False)
        finally:
            sys.stdout.flush()
        sys.exit(code or 0)
    except TyperException as error:
        _end(explained(error))
    except FscostError as error:
        _end(error)
    except Terminated:
        print("fscost: terminated", file=sys.stderr)
        sys.exit(TERMINATED)
    except KeyboardInterrupt:
        print("fscost: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        _give_up_output()
        sys.exit(READER_GONE)
    except ImportError as error:
        _end(
            HostError(
                f"a part of fscost cannot be loaded: {error}",
                "run `make setup`, and look at the limits of memory and files (`ulimit -a`)",
            )
        )
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        _end(
            HostError(
                "no further thread can be started",
                "raise the limits of memory and processes (`ulimit -v`, `ulimit -u`)",
            )
        )
    except MemoryError:
        _end(
            HostError(
                "out of memory",
                "end other programs first, or raise the limit of memory (`ulimit -v`)",
            )
        )
    except OSError as error:
        if _is_of_output(error):
            _give_up_output()
        _end(HostError(*_of_the_host(error)))


def _terminate(number: int, frame: object) -> None:
    # Once: what ends in order must not be interrupted again.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _is_of_output(error: OSError) -> bool:
    """Whether standard output failed (write(2)); an error about a file that fscost opened itself names that file."""
    return error.filename is None and error.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EFBIG,
        errno.EBADF,
    )


def _of_the_host(error: OSError) -> tuple[str, str]:
    """Cause and remedy of an error of the operating system."""
    if _is_of_output(error):
        return (
            f"the output cannot be written: {error.strerror}",
            "write it somewhere else, or make room there",
        )
    if error.filename is None and error.errno == errno.ENOENT:
        return (
            "the working directory is gone (getcwd: no such file or directory)",
            "change to a folder that exists",
        )
    remedies = {
        errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
        errno.EAGAIN: "raise the limit of processes (`ulimit -u`)",
        errno.ENOMEM: "end other programs first, or raise the limit of memory (`ulimit -v`)",
        errno.ENAMETOOLONG: "give a shorter name",
        errno.ENOSPC: "make room there, or name another place",
    }
    what = (
        f"{_shortened(os.fsdecode(error.filename))}: {error.strerror}"
        if error.filename
        else f"the system refused: {error.strerror}"
    )
    return what, remedies.get(
        error.errno or 0,
        "check that path and its permissions"
        if error.filename
        else "see the limits that `ulimit -a` prints",
    )


def _shortened(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"


def _end(error: FscostError | None) -> None:
    if error is None:
        sys.exit(2)
    print(f"fscost: {plain(str(error))}", file=sys.stderr)
    sys.exit(error.exit_code)


def _open_missing_streams() -> None:
    """A program that is started without standard streams (`fscost … >&-`) would get their numbers for the first files that it opens."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _give_up_output() -> None:
    """Python would write what is left once more when it ends (docs.python.org, signal, "Note on SIGPIPE")."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _forgive(stream: TextIO | object) -> None:
    """A terminal without × and – gets a question mark, not a traceback."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
