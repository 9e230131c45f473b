"""The commands and their error handling: one clear message and exit 2, never a traceback."""

import atexit
import codecs
import errno
import gc
import os
import resource
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.exceptions import TyperException

from fscost.cli import signals
from fscost.cli.help import Command
from fscost.cli.usage import READER_GONE, Commands, Interrupted, explained
from fscost.errors import DefectError, FscostError, HostError, Terminated
from fscost.view.grid import plain

_LONGEST_PATH = 200
"""Maximum length of a path in a message. A path too long for the kernel would fill the screen."""
_MORE_MEMORY = "close other programs first, or raise the memory limit (`ulimit -v`)"

_TRACEBACK = "FSCOST_TRACEBACK"
_HELP = "help"
_REPORT = ("altair", "jinja2", "squarify", "vl_convert")
"""Packages of the extra `report`."""
LEAST_ADDRESS_SPACE_BYTES = 1 << 30
COMPLETE = "_FSCOST_COMPLETE"
"""Environment variable set by a shell that asks for completions (`fscost completion`)."""
EPILOG = (
    "Exit status: 0 done; 1 a cell (one profile, one repetition) failed, `recording verify` found "
    "damage, or a --fail-if condition holds; 2 usage error, unusable input, or nothing could run; "
    "130 interrupted, 143 or 129 terminated (SIGTERM, SIGHUP): finished cells are kept."
)
HELP = {"help_option_names": ["-h", "--help"]}
"""Both spellings of the help option, as in other tools. Click passes them to subcommands."""

COMMANDS = {
    "compare": "Measure and compare the cost of file systems for a workload.",
    "run": "Run the workloads of a suite file (fscost.toml), and compare them.",
    "show": "Print the tables of a finished run again, in any format.",
    "diff": "Compare several runs: each profile in each run, and the ratio to the first run.",
    "ls": "List the runs in a folder, each with its main result.",
    "report": "Write one HTML file with the answers, charts and tables of a run.",
    "open": "Open the report of a run in the browser; write it first if it is missing.",
    "serve": "Serve the runs in a folder as a small web site on this machine.",
    "plot": "Draw one chart of a run as PNG, SVG or HTML.",
    "explain": "Attribute each written byte to its structure, cause and file.",
    "wear": "Estimate the wear that recorded writes cause on an SSD, an SD card or an eMMC.",
    "replay": "Estimate how long recorded requests would take on a hard disk, SD card or SSD.",
    "crash": "Cut the power of recorded disks, and check what each file system kept.",
    "devices": (
        "List the devices whose wear and latency are modelled, with the source of each number."
    ),
    "calibrate": "Measure a block device with fio, and write its model as TOML.",
    "profiles": "List the named profiles, one line each.",
    "workloads": "List the built-in workloads, or show the options and steps of one.",
    "doctor": "Check what the two labs need; exit 2 if neither can run here.",
    "schema": "Print the JSON Schema of suite files, or of a command's --json output.",
    "completion": 'Print the completion script of a shell: eval "$(fscost completion bash)".',
    "man": "Show a command's manual page; to a pipe or file, print its man(7) source.",
    "study": (
        "Repeat published experiments, compare the values, and give a verdict for each claim."
    ),
    "recording": "Inspect, check, export, strip, fetch and import recordings.",
}
"""Command names, each a module of this package, with the first line of their help."""


class _Program(Commands):
    """Group that imports only the module of the command that runs. Importing all takes a second."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, summary in COMMANDS.items():
            self.add_command(Command(name, help=summary))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse `fscost help COMMAND` as `fscost COMMAND --help`."""
        if args[:1] == [_HELP]:
            args = [*(word for word in args[1:] if word != _HELP), "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else command(str(found.name)), rest


app = typer.Typer(
    name="fscost",
    cls=_Program,
    help="Measure the cost of file systems and their options: bytes to the device, time, CPU, space.",
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
    """Import the module of a command, and return the command."""
    module = import_module(f"fscost.cli.{name}")
    found = getattr(module, "app", None)
    if found is None:
        found = typer.Typer(add_completion=False)
        found.command(name, cls=Command)(getattr(module, name))
    return typer.main.get_command(found)


def _check_memory_limit() -> None:
    """Raise HostError if the address space is too small to load the libraries.

    Below this limit, OpenBLAS aborts the process, and Arrow's threads hang.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE_BYTES:
        raise HostError(
            f"fscost cannot start: its address space is limited to {limit >> 20} MiB of memory",
            f"raise the limit: `ulimit -v {LEAST_ADDRESS_SPACE_BYTES >> 10}` or more",
        )


def main() -> None:
    """Run the `fscost` entry point."""
    # Else the interpreter looks for garbage in all that is left: 0.2 s after a report.
    atexit.register(gc.freeze)
    _open_missing_streams()
    signals.raise_terminated()
    for stream in (sys.stdout, sys.stderr):
        _forgive(stream)
    if COMPLETE in os.environ:
        import_module("fscost.cli.completion").prepare()
    try:
        _check_memory_limit()
        try:
            code = app(prog_name="fscost", standalone_mode=False)
        except Interrupted as ended:
            raise ended.interrupt from None
        finally:
            sys.stdout.flush()
        sys.exit(code or 0)
    except TyperException as error:
        _end(explained(error))
    except FscostError as error:
        _end(error)
    except Terminated as terminated:
        print(f"fscost: terminated by {terminated.signal.name}", file=sys.stderr)
        sys.exit(terminated.exit_code)
    except KeyboardInterrupt:
        print("fscost: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        _give_up_output()
        sys.exit(READER_GONE)
    except ImportError as error:
        if error.name in _REPORT:
            _end_for(f"charts and pages need {error.name}", "pip install 'fscost[report]'")
        _end_for(
            f"a part of fscost cannot be loaded: {error}",
            "run `make setup`, and check the limits on memory and open files (`ulimit -a`)",
        )
    except MemoryError:
        _end_for("out of memory", _MORE_MEMORY)
    except OSError as error:
        if _is_of_output(error):
            _give_up_output()
        _end_for(*_of_the_host(error))
    except Exception as error:  # noqa: BLE001  # Nobody can do anything with a traceback but report it.
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            _end_for(
                "no further thread can be started",
                "raise the limits on memory and processes (`ulimit -v`, `ulimit -u`)",
            )
        _end(_defect(error))


def _defect(error: Exception) -> DefectError:
    """Return a defect's kind and place. With FSCOST_TRACEBACK, also print all callers."""
    frames = traceback.extract_tb(error.__traceback__)
    if os.environ.get(_TRACEBACK):
        traceback.print_exception(error)
    package = Path(__file__).parents[1]
    ours = next(each for each in reversed(frames) if Path(each.filename).is_relative_to(package))
    place = "/".join(Path(ours.filename).parts[-2:])
    return DefectError(
        f"a defect of fscost: {type(error).__name__}: {str(error)[:_LONGEST_PATH]}"
        f" ({place}:{ours.lineno})",
        f"please report it with the command and what {_TRACEBACK}=1 prints",
    )


def _is_of_output(error: OSError) -> bool:
    """Return True if standard output failed (write(2)). An error about a file that fscost opened
    itself names that file."""
    return error.filename is None and error.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EFBIG,
        errno.EBADF,
    )


def _of_the_host(error: OSError) -> tuple[str, str]:
    """Return the cause and remedy of an operating-system error."""
    if _is_of_output(error):
        return (
            f"the output cannot be written: {error.strerror}",
            "write it somewhere else, or free some space there",
        )
    if error.filename is None and error.errno == errno.ENOENT:
        return (
            "the working directory is gone (getcwd: no such file or directory)",
            "change to a folder that exists",
        )
    remedies = {
        errno.EMFILE: "raise the limit on open files (`ulimit -n`)",
        errno.EAGAIN: "raise the limit on processes (`ulimit -u`)",
        errno.ENOMEM: _MORE_MEMORY,
        errno.ENAMETOOLONG: "give a shorter name",
        errno.ENOSPC: "free some space there, or name another folder",
    }
    if error.filename:
        what = f"{_shortened(os.fsdecode(error.filename))}: {error.strerror}"
        remedy = "check that path and its permissions"
    else:
        what = f"operating-system error: {error.strerror}"
        remedy = "check the limits that `ulimit -a` prints"
    return what, remedies.get(error.errno or 0, remedy)


def _shortened(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"


def _end_for(what: str, remedy: str) -> None:
    _end(HostError(what, remedy))


def _end(error: FscostError | None) -> None:
    if error is None:
        sys.exit(2)
    print(f"fscost: {plain(str(error))}", file=sys.stderr)
    sys.exit(error.exit_code)


def _open_missing_streams() -> None:
    """Open missing standard streams (`fscost … >&-`) on /dev/null.

    Otherwise, the first files that fscost opens would get their descriptors.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor: `number`
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _give_up_output() -> None:
    """Redirect standard output to /dev/null.

    Otherwise, Python would flush the remaining output again at exit (docs.python.org, signal,
    "Note on SIGPIPE").
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_ASCII = str.maketrans(
    {"█": "#", "▓": "=", "▒": "-", "░": ".", "≈": "~", "−": "-", "–": "-", "×": "x", "→": ">"}
)
"""What stands for the characters of tables where they cannot be encoded."""


def _forgive(stream: TextIO | object) -> None:
    """Print similar characters or question marks, not a traceback, on terminals that cannot encode
    × or –."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        codecs.register_error("fscost", _in_ascii)
        reconfigure(errors="fscost")


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII)
    return "".join(each if each.isascii() else "?" for each in text), error.end
