"""Manual pages have the text of --help, and man(1) accepts them."""

import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from fscost.cli.app import COMMANDS, EPILOG
from fscost.cli.man import _text as escaped
from fscost.cli.man import page

Run = Callable[..., Any]
NAMES = [(), *((name,) for name in COMMANDS), ("study", "run"), ("recording", "export")]


def plain(text: str) -> str:
    """Return the text of a page with escapes undone."""
    undone = re.sub(r"\\\[u([0-9A-F]{4,})\]", lambda each: chr(int(each[1], 16)), text)
    return " ".join(undone.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").split())


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_a_page_has_every_word_of_the_help(fscost: Run, names: tuple[str, ...]) -> None:
    helped = fscost(*names, "--help", columns=10_000).stdout
    told = plain(page(names))
    lines = [line.strip() for line in helped.splitlines() if line.startswith("  ")]
    assert len(lines) >= 2
    for part in (part for line in lines for part in re.split(r"\s{2,}", line)):
        assert part in told or part in EPILOG, part
    assert EPILOG.removeprefix("Exit status: ") in told


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is missing")
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_groff_finds_nothing_wrong(names: tuple[str, ...]) -> None:
    said = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=page(names),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stderr == ""


def test_the_page_goes_where_output_goes(fscost: Run) -> None:
    assert fscost("man", "study", "run").stdout == page(("study", "run"))
    assert "did you mean compare?" in fscost("man", "comprae", check=(2,)).stderr
    assert "did you mean export?" in fscost("man", "recording", "exprot", check=(2,)).stderr
    assert "it has no subcommands" in fscost("man", "compare", "x", check=(2,)).stderr


def test_what_looks_like_a_request_is_text() -> None:
    assert escaped(".so /etc/passwd \\n(.g") == "\\&.so /etc/passwd \\en(.g"
    assert escaped("'br") == "\\&'br"
