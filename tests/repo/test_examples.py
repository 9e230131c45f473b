"""Every example runs the way a newcomer runs it."""

import re
import subprocess
import sys

import pytest
from tests.repo.test_repository import ROOT


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_it_runs(name: str) -> None:
    command = [sys.executable, ROOT / "examples" / name]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert said.stderr == ""
    assert re.search(r"^ +\d+\.\d  file_data$", said.stdout, re.MULTILINE)
