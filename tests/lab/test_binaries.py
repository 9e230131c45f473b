"""Selection of the agent and the disk server to run."""

from pathlib import Path

import pytest

from fscost.lab.cell.binaries import find_binaries

CHECKOUT = Path(__file__).parents[2]


def test_a_python_from_elsewhere_runs_what_was_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python from elsewhere, for example an unprivileged user's on a checkout that root owns,
    runs the binaries that were set up: cargo's output in the checkout may be old."""
    monkeypatch.setattr("sys.executable", "/nowhere/python3")
    monkeypatch.setenv("PATH", "/nowhere")
    found = find_binaries()
    programs = CHECKOUT / ".venv/bin"
    assert (found.agent, found.disk) == (programs / "fscost-agent", programs / "fscost-disk")
