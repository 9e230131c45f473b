"""What starting the program costs, in modules: times are benches/explain.py's."""

import subprocess
import sys
from typing import get_args

import pytest

from fscost import analyze
from fscost.cli import explain
from fscost.cli.app import COMMANDS, command

SLOW = ("numpy", "pyarrow", "scipy")


@pytest.mark.parametrize(
    "modules", ["fscost.cli.app", "fscost.cli.explain", "fscost.cli.recording"]
)
def test_no_slow_library_is_imported_before_it_is_used(modules: str) -> None:
    code = f"import sys, {modules}; print(*(set({SLOW!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_explain_imports_nothing_that_it_does_not_use() -> None:
    """While a recording is explained, imports take a processor from the threads that unpack it."""
    code = (
        "import sys, fscost.analyze, fscost.cli.output.explained, fscost.report.width;"
        "print(*({'scipy', 'rich', 'pyarrow.parquet'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_their_own_help_says(name: str) -> None:
    assert command(name).help.split("\n")[0] == COMMANDS[name]


def test_what_can_be_summed_by_is_what_the_option_offers() -> None:
    assert list(get_args(explain.By)) == [by.value for by in analyze.By]
