"""One agent process: it takes the plan and returns checked events. No process outlives it."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fscost import files
from fscost.host import interrupts, search_path
from fscost.lab.cell.events import MAX_EVENTS, Event, ProtocolError, parse
from fscost.lab.cell.lines import Lines

TERMINATE_S = 10
LINGER_S = 10


def run_agent(
    agent: Path,
    plan: dict[str, Any],
    errors: Path,
    deadline_s: float,
    on_event: Callable[[Event], None],
) -> int:
    """Run the plan; `on_event` receives each event as it arrives. Return the agent's exit status
    (negative: its signal).

    Raises ProtocolError if the stream is damaged, too long, or continues past the deadline.
    Whatever happens, Ctrl-C included, the agent and its children have ended when this returns.
    """
    with (
        _plan_file(plan) as stdin,
        files.growing(errors) as stderr,
        interrupts.held() as release,
    ):
        # The agent gets a new session, so that Ctrl-C in the terminal reaches only fscost, which
        # shuts the agent down cleanly.
        process = subprocess.Popen(
            [agent, "run"],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # Nothing else of the caller's environment, which may hold secrets: the workload can
            # read /proc/1/environ, at least as of Linux 6.18.
            env={"PATH": search_path(), "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            release()
            assert process.stdout is not None
            lines = Lines(process.stdout.fileno())
            for number, line in enumerate(lines.until(time.monotonic() + deadline_s)):
                if number >= MAX_EVENTS:
                    raise ProtocolError(f"more than {MAX_EVENTS} events")
                on_event(parse(line))
            return process.wait(timeout=TERMINATE_S)
        except subprocess.TimeoutExpired:
            raise ProtocolError("it closed its output but did not exit") from None
        finally:
            _end(process)


def _plan_file(plan: dict[str, Any]) -> Any:
    """Write the plan to an unnamed file in memory. Nothing is on disk, and a long plan cannot block
    as it could in a pipe."""
    file = os.fdopen(os.memfd_create("fscost-plan"), "w+b")
    file.write(json.dumps(plan).encode())
    file.seek(0)
    return file


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the agent if it still runs, then wait until its whole session has ended.

    The kernel kills the agent's children when it dies (PR_SET_PDEATHSIG). Unmounting their file
    systems takes a moment, and the next cell must not start meanwhile.
    """
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=TERMINATE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()
    until = time.monotonic() + LINGER_S
    while _session_lives(process.pid) and time.monotonic() < until:
        time.sleep(0.02)


def _session_lives(session: int) -> bool:
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # Fields after the name (which may hold anything, but ends with the last parenthesis):
            # state, ppid, pgrp, session.
            fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session and fields[0] != b"Z":
                return True
    return False
