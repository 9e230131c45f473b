"""The examples of the README and the documents: fscost accepts each command line, and the demo
shows its real output."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fscost.cli.app import COMMANDS, command

ROOT = Path(__file__).parents[2]


def blocks(document: Path) -> list[str]:
    return re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)


def examples(document: Path) -> list[str]:
    """Return the command lines that follow a prompt; one may continue on the next line."""
    lines = [line for block in blocks(document) for line in block.replace("\\\n", "").splitlines()]
    return [line[2:] for line in lines if re.match(r"[#$] fscost ", line)]


BLOCKS = blocks(ROOT / "README.md")
LINES = examples(ROOT / "README.md")
DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))


def test_there_are_examples() -> None:
    assert len(LINES) > 8
    assert {shlex.split(line, comments=True)[1] for line in LINES} <= set(COMMANDS)


@pytest.mark.parametrize(
    "line", [*LINES, *(line for document in DOCUMENTS for line in examples(document))]
)
def test_the_command_line_takes_it(line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    found = command(name)
    if hasattr(found, "commands"):
        found, arguments = found.commands[arguments[0]], arguments[1:]
    # Raises an error for an unknown option, a missing value or a missing argument.
    found.make_context(name, arguments)


def test_the_demo_answers_first_and_fits_a_screen() -> None:
    demo = BLOCKS[0].splitlines()
    assert demo[0] == "# make demo"
    assert max(map(len, demo)) <= 100
    assert len(demo) <= 55
    headline = demo[3]
    assert headline.startswith("ext4 -o noatime wrote the least: ")
    assert any(line.endswith("→ -o noatime") for line in demo)


def test_the_recording_is_of_a_run_and_fits_80_columns() -> None:
    """`tools/record-terminal docs/demo.svg fscost compare …` recreates the recording."""
    root = ElementTree.parse(Path(__file__).parents[2] / "docs/demo.svg").getroot()
    texts = root.findall("{http://www.w3.org/2000/svg}text")
    lines = [text.text or "" for text in texts]
    assert lines[0].startswith("# fscost compare ")
    assert max(map(len, lines)) <= 80
    assert any(re.match("ext4 -o noatime wrote the least: ", line) for line in lines)
    # Each line of the output is hidden until it is printed, in order.
    hidden = [float(each.get("dur", "")[:-1]) for text in texts for each in text]
    assert len(hidden) >= 40
    assert hidden == sorted(hidden)
