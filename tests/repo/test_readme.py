"""The README's examples: each command line is one that fscost takes, and the demo is what it
prints."""

import re
import shlex
from pathlib import Path

import pytest

from fscost.cli.app import COMMANDS, command

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
LINES = [
    line[2:] for block in BLOCKS for line in block.splitlines() if re.match(r"[#$] fscost ", line)
]


def test_there_are_examples() -> None:
    assert len(LINES) > 8
    assert {shlex.split(line, comments=True)[1] for line in LINES} <= set(COMMANDS)


@pytest.mark.parametrize("line", LINES)
def test_the_command_line_takes_it(line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    found = command(name)
    if hasattr(found, "commands"):
        found, arguments = found.commands[arguments[0]], arguments[1:]
    # Raises for an unknown option, a missing value or a missing argument.
    found.make_context(name, arguments)


def test_the_demo_answers_first_and_fits_a_screen() -> None:
    demo = BLOCKS[0].splitlines()
    assert demo[0] == "# make demo"
    assert max(map(len, demo)) <= 100
    assert len(demo) <= 55
    headline = demo[3]
    assert headline.startswith("ext4 -o noatime wrote least: ")
    assert any(line.endswith("→ -o noatime") for line in demo)
