"""Server that runs the program many times without starting Python each time: one warm process
forks, and each child runs `fscost` from `main` on.

Each line on standard input is a JSON request, and each line on standard output its answer. The
child gets a separate session, working directory, environment and streams, as from a shell. It also
gets a separate network namespace and a /run, where the lock of runs lives. This process stays in
that namespace until the next request, so that the namespace's number identifies one case.
"""

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from typing import Any

MODULES = (
    *(
        f"fscost.cli.{name}"
        for name in ("app", "compare", "doctor", "explain", "recording", "show", "study", "wear")
    ),
    *(
        "fscost.analyze",
        "fscost.cli.output.explained",
        "fscost.cli.output.instant",
        "fscost.run.execute",
    ),
    *("pydantic.type_adapter", "typer._adapters"),
)
"""All modules that a command imports. Without this list each child would import them again."""
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in fscost.cli: a process with threads must not fork
_CLONE_NEWNS, _CLONE_NEWNET = 0x20000, 0x40000000
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


def serve() -> None:
    """Serve requests until standard input ends."""
    for module in MODULES:
        importlib.import_module(module)
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        _must(_LIBC.unshare(_CLONE_NEWNET))
        child = os.fork()
        if child == 0:
            _become(request)
        answer = {
            "status": _wait(child, request["limit_s"]),
            "namespace": os.readlink("/proc/self/ns/net"),  # noqa: PTH115
        }
        print(json.dumps(answer), flush=True)


def _wait(child: int, limit_s: int) -> int | None:
    """Return the exit status; None if the child had to be killed."""

    def kill(*_: object) -> None:
        os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(limit_s)
    _, status = os.waitpid(child, 0)
    return None if signal.alarm(0) == 0 else os.waitstatus_to_exitcode(status)


def _must(answer: int) -> None:
    if answer != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _become(request: dict[str, Any]) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _must(_LIBC.unshare(_CLONE_NEWNS))
        _must(_LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
        _must(_LIBC.mount(b"tmpfs", b"/run", b"tmpfs", 0, None))
        os.mkdir("/run/lock")  # noqa: PTH102
        os.chdir(request["cwd"])
        if request["inside"]:
            subprocess.run(["bash", "-ec", request["inside"]], check=True, stdin=subprocess.DEVNULL)
        os.chdir(request["within"])
        os.environ.update(request["env"])
        for number, (path, flags) in enumerate(
            (
                (os.devnull, os.O_RDONLY),
                (request["stdout"], os.O_WRONLY),
                (request["stderr"], os.O_WRONLY),
            )
        ):
            os.dup2(os.open(path, flags | os.O_CREAT, 0o600), number)
        if request["shell"]:
            # Python ignores SIGPIPE, and its children would inherit that (signal(7)).
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # Under nohup all children ignore SIGHUP, and bash cannot undo that.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            os.execvp("bash", ["bash", "-c", request["shell"]])
        sys.argv = ["fscost", *request["arguments"]]
        from fscost.cli import main

        main()
    except SystemExit as ending:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ending.code or 0))
    except BaseException:  # noqa: BLE001 (what Python itself would print)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    serve()
