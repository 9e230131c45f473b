"""Fixtures shared by the tests of the repository."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def with_cargo() -> dict[str, str]:
    """Return the environment with rustup's folder in PATH, so that cargo is found; the Makefile
    does the same."""
    home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    return os.environ | {"PATH": f"{home}/bin:{os.environ.get('PATH', os.defpath)}"}
