"""One command at a time on a machine: several runs of one command hold the lock together, another
command waits, and several runs are resumed together."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost.results import load
from fscost.run import exclusive

from .conftest import PROGRAM

Run = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[str]"]
SUITE = """
version = 1
profiles = ["ext4"]
stop = { min_repetitions = 2, max_repetitions = 2 }

[workloads.copy]
command = "cp a b"

[workloads.move]
command = "mv a b"
"""


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return f"test.{os.getpid()}.{tmp_path.name}"


def test_several_runs_hold_the_lock_together(fscost: Run, tmp_path: Path, lock: str) -> None:
    """Between the runs, too: --setup starts another command there."""
    other = shlex.join(
        [*PROGRAM, "compare", "--lab", f"fake:lock={lock}", "--out", "{n}-other", "--", "true"]
    )
    options = ("--on", "ext4", "-r", "1", "-L", "n", "a,b", "-o", "out")
    setup = ("--setup", f"{other} 2>>said; echo $? >>said")
    fscost("compare", "--lab", f"fake:lock={lock}", *options, *setup, "--", "echo", "{n}")
    said = (tmp_path / "said").read_text()
    assert said.count(f"another fscost run is in progress (process {os.getpid()}, since ") == 2
    assert [line for line in said.splitlines() if line.isdecimal()] == ["2", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "said"]


def test_a_run_waits_for_another(start: Start, lock: str, tmp_path: Path) -> None:
    options = ("--on", "ext4", "-r", "1", "--wait", "--out", "here")
    with exclusive(f"fscost.fake.{lock}"):
        waiting = start("compare", "--lab", f"fake:lock={lock}", *options, "--", "true")
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        assert line.startswith(f"waiting for another fscost run (process {os.getpid()}, since 20")
        assert not (tmp_path / "here").exists()
    waiting.communicate(timeout=120)
    assert waiting.returncode == 0
    assert len(load(tmp_path / "here").manifest.done) == 1


@pytest.mark.parametrize("kind", ["suite", "lists"])
def test_several_runs_are_resumed_together(fscost: Run, tmp_path: Path, kind: str) -> None:
    (tmp_path / "fscost.toml").write_text(SUITE)
    command = {
        "suite": ("run", "--lab", "fake", "--brief"),
        "lists": ("compare", "--lab", "fake", "--on", "ext4", "-r", "2", "-L", "n", "copy,move"),
    }[kind]
    words = () if kind == "suite" else ("--", "echo", "{n}")
    whole = fscost(*command, "-o", "out", *words)
    first, second = sorted((tmp_path / "out").iterdir())
    before = [load(folder).samples for folder in (first, second)]
    # The second run was killed in its second repetition; the first had finished.
    finished = (first / "manifest.json").stat()
    manifest = json.loads((second / "manifest.json").read_text())
    manifest |= {"state": "running", "cells": manifest["cells"][:1]}
    (second / "manifest.json").write_text(json.dumps(manifest))
    resumed = fscost(*command, "--resume", "out", *words)
    assert resumed.stdout == whole.stdout
    assert resumed.stderr.count(": finished already\n") == 1
    assert (first / "manifest.json").stat().st_mtime_ns == finished.st_mtime_ns
    assert [load(folder).samples for folder in (first, second)] == before
    # A run that had not begun is made.
    second.rename(tmp_path / "elsewhere")
    assert fscost(*command, "--resume", "out", *words).stdout == whole.stdout


def test_a_folder_without_runs_is_not_resumed(fscost: Run, tmp_path: Path) -> None:
    (tmp_path / "fscost.toml").write_text(SUITE)
    said = fscost("run", "--lab", "fake", "--resume", "nowhere", check=(2,)).stderr
    assert "nowhere holds no runs: No such file or directory" in said
    said = fscost("run", "--lab", "fake", "--resume", "a", "-o", "b", check=(2,)).stderr
    assert "--resume and --out cannot be combined" in said
