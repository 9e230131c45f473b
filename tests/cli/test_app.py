"""The end of the program, for any command."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from fscost.cli import app

PROGRAM = Path(sys.executable).with_name("fscost")


@pytest.mark.parametrize("command", [["--help"], ["profiles"], ["workloads"], ["study", "list"]])
def test_a_reader_who_goes_ends_it_quietly(command: list[str]) -> None:
    """`fscost profiles | head -0` ends without a message, as SIGPIPE ends other programs."""
    with subprocess.Popen(["sleep", "0"], stdin=subprocess.PIPE) as reader:
        reader.wait()
        ended = subprocess.run(
            [PROGRAM, *command], stdout=reader.stdin, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, "")


def test_what_cannot_be_encoded_has_a_stand_in() -> None:
    """Bars of three kinds were question marks alike."""
    stream = TextIOWrapper(BytesIO(), encoding="ascii")
    app._forgive(stream)
    stream.write("█▓▒░ ≈ −5 % 2× é")
    stream.seek(0)
    assert stream.buffer.read() == b"#=-. ~ -5 % 2x ?"


@pytest.mark.parametrize("command", [["--help"], ["profiles"]])
def test_output_that_has_no_room_is_one_clear_error(command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (
        ended.stderr
        == "fscost: the output cannot be written: No space left on device\n  write it somewhere"
        " else, or free some space there\n"
    )
    assert ended.returncode == 2


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_that_of_the_workspace(option: str) -> None:
    manifest = tomllib.loads((Path(__file__).parents[2] / "Cargo.toml").read_text())
    ended = subprocess.run([PROGRAM, option], capture_output=True, text=True, check=True)
    assert ended.stdout == f"fscost {manifest['workspace']['package']['version']}\n"


@pytest.mark.parametrize(
    "words", [[], ["compare"], ["study"], ["study", "run"], ["recording", "export"]]
)
def test_every_command_has_a_short_option_for_help(words: list[str]) -> None:
    short, long = (
        subprocess.run([PROGRAM, *words, option], capture_output=True, text=True, check=True).stdout
        for option in ("-h", "--help")
    )
    assert "Usage: fscost" in short
    assert short == long


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize("command", ["profiles", "workloads", "schema", "ls"])
def test_lists_fit_the_terminal_and_lose_no_word(
    fscost: Callable[..., Any], command: str, columns: int
) -> None:
    if command == "ls":
        fscost("compare", "--lab", "fake", "-r", "1", "-n", "one", "--", "true")
    # The text below the list is a sentence, which the terminal wraps.
    narrow, wide = (
        fscost(command, columns=each).stdout.split("\nAny other")[0] for each in (columns, 200)
    )
    assert narrow.split() == wide.split()
    assert max(map(len, narrow.splitlines())) <= columns


@pytest.mark.parametrize("is_shown", [False, True])
def test_a_defect_is_one_line_with_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_shown: bool
) -> None:
    def broken(**_: object) -> int:
        return int("zz")

    monkeypatch.setattr(app.signals, "raise_terminated", lambda: None)
    monkeypatch.setattr(app, "app", broken)
    monkeypatch.setenv("FSCOST_TRACEBACK", "1" if is_shown else "")
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "fscost: a defect of fscost: ValueError: invalid literal" in told
    assert "(cli/app.py:" in told
    assert "\n  please report it with the command and what FSCOST_TRACEBACK=1 prints\n" in told
    assert ("Traceback" in told) == is_shown
