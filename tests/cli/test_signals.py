"""Signals that end a run: the closed terminal of a real session, and nohup."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost.cli import signals
from fscost.errors import Terminated
from fscost.request import hooks

from .conftest import PROGRAM

Start = Callable[..., "subprocess.Popen[str]"]


def read_until(terminal: int, words: str) -> None:
    said = b""
    while words.encode() not in said:
        said += os.read(terminal, 4096)


def test_a_closed_terminal_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    """Nothing can be written to the terminal any more, and the run must still end in order."""
    terminal, theirs = pty.openpty()
    options = ("--on", "ext4", "--out", "here", "--cleanup", "echo done >cleaned")
    run = (*PROGRAM, "compare", "--lab", "fake:delay_s=0.2", *options, "--", "true")
    with subprocess.Popen(
        ["setsid", "--ctty", *run],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        read_until(terminal, "[1 of")
        read_until(terminal, ": mount")  # of the second cell, which has just begun to sleep
        os.close(terminal)
    assert process.returncode == 129
    assert (tmp_path / "cleaned").read_text() == "done\n"
    manifest = json.loads((tmp_path / "here" / "manifest.json").read_text())
    assert (manifest["state"], manifest["stopped_because"]) == (
        "interrupted",
        "interrupted by SIGHUP",
    )
    assert [each.name for each in (tmp_path / "here" / "cells").iterdir()] == ["ext4.0"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_setup_that_is_interrupted_is_cleaned_up(
    start: Start, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """It may have made something already, such as a database that it started."""
    setup = f"echo made >log; kill -{number} $PPID; while kill -0 $PPID; do sleep 0.1; done"
    options = ("--setup", setup, "--cleanup", "echo cleaned >>log", "--on", "ext4")
    process = start("compare", "--lab", "fake", *options, "--", "true")
    _, said = process.communicate()
    assert (tmp_path / "log").read_text() == "made\ncleaned\n", said
    assert process.returncode == status
    assert f"fscost: terminated by {number.name}" in said


def test_nohup_lets_a_run_go_on() -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signals.raise_terminated()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_signal_while_a_command_starts_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python then knows no process that it could end."""
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            super().__init__(command, **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    before = {each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGTERM)}
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    try:
        signals.raise_terminated()
        with pytest.raises(Terminated), hooks.around(["exec sleep 1000"], [], str):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    (process,) = started
    ended = process.poll()
    process.kill()
    assert ended == -signal.SIGKILL
