"""Names of files in a recorded file system come from whoever made them: no terminal, spreadsheet or
page obeys them. tests/cli/test_hostile_inputs.py does the same with all other texts."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_hostile_inputs import ESCAPE, HOSTILE, is_raw

pytestmark = pytest.mark.root
PROGRAM = [sys.executable, "-c", "from fscost.cli import main; main()"]
NAME = HOSTILE.replace("/", "|")
MAKE = f"""
import os
for folder in ({NAME!r}, {NAME + "2"!r}):
    os.mkdir(folder)
    for number in range(60):
        name = {NAME!r} + str(number) + "." + {ESCAPE[:9]!r}
        with open(os.path.join(folder, name), "wb") as file:
            file.write(os.urandom(5000))
            os.fsync(file.fileno())
"""
COMMANDS = [
    ("explain", "RUN"),
    *[("explain", "RUN", "--by", by) for by in ("file", "directory", "extension", "transaction")],
    ("explain", "RUN", "--json"),
    ("explain", "RUN", "--by", "file", "--charge-commits", "--json"),
    ("explain", "RUN", "--profile", "ext4", "--fsyncs"),
    ("explain", "RUN", "--profile", "xfs", "--fsyncs", "--json"),
    ("explain", "RUN", "--diff", "ext4", "xfs"),
    ("explain", "RUN", "--profile", "ext4", "--at", "end"),
    ("show", "RUN", "--wide"),
    ("show", "RUN", "--json"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("names") / "run"
    profiles = [word for name in ("ext4", "xfs", "btrfs") for word in ("--on", name)]
    once = ["--lab", "native", "-r", "1", "--keep", "all", "--size", "512M", "--out", str(out)]
    work = ["--", "python3", "-c", MAKE]
    told = called("compare", *profiles, *once, *work)
    assert not sorted(filter(is_raw, set(told)))
    return out


def called(*words: str) -> str:
    ended = subprocess.run([*PROGRAM, *words], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_output_has_a_name_raw(run: Path, words: tuple[str, ...]) -> None:
    told = called(*(str(run) if word == "RUN" else word for word in words))
    assert not sorted(filter(is_raw, set(told)))
    if "--by" in words and "transaction" not in words:
        assert "x1b" in told or "u001b" in told, "no name is shown, so nothing was tested"


def test_no_page_has_a_name_raw(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    called("report", str(run), "-o", str(page))
    text = page.read_text()
    assert not sorted(filter(is_raw, set(text)))
    assert "x1b" in text
    assert "<b>" not in text
