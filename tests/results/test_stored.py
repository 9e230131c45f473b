"""The command that fetches recordings from a store: the manifest that names the store may be a
stranger's."""

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.results import STORED, Stored, how_to_fetch


@pytest.mark.parametrize(
    "url", ["s3://bucket/runs", "file:///x; echo evil #", "file:///$(id)", "s3://it's"]
)
def test_the_url_is_one_word_of_the_command(url: str) -> None:
    cell: Any = SimpleNamespace(facts={STORED: Stored(url, "run/ext4.0", 1, "00").fact()})
    command = how_to_fetch([cell])
    assert command[0] == command[-1] == "`"
    script = f"set -- {command[1:-1]}; printf '%s\\n' \"$@\""
    ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["fscost", "recording", "fetch", "RUN", "--from", url]


def test_an_ordinary_url_is_shown_as_it_is() -> None:
    cell: Any = SimpleNamespace(facts={STORED: Stored("s3://bucket/runs", "a", 1, "00").fact()})
    assert how_to_fetch([cell]) == "`fscost recording fetch RUN --from s3://bucket/runs`"


def test_without_a_store_there_is_no_command() -> None:
    cell: Any = SimpleNamespace(facts={})
    assert how_to_fetch([cell]) == ""
