"""What the tests of the repository share."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def with_cargo() -> dict[str, str]:
    """The environment, in which cargo is found where rustup puts it too; the Makefile does the
    same."""
    home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    return os.environ | {"PATH": f"{home}/bin:{os.environ.get('PATH', os.defpath)}"}
