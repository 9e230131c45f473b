"""Every shell example of the README and the documents is run, or its document says why not.

An HTML comment before a block, invisible on the page, marks the lines that contain the quoted
words: `<!-- not run: "--kernel": boots guests -->`. Lines that measure (compare, study run) are
`long` and run with one repetition. All other lines run in a folder where names such as RUN are a
small run; each test run covers those of the README and of a few documents.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.variants import some

from fscost.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = re.compile(r'<!-- not run: "(.+?)": (.+?) -->\n')
BLOCK = re.compile(rf"((?:{MARK.pattern})*)```console\n(.*?)```", re.DOTALL)
MEASURES = re.compile(r"fscost (compare|study run|calibrate)\b")

MAKE_RUN = (
    "fscost compare --workload maildir --set files=60 -r 2 --on ext4 --on xfs --on btrfs --out made"
)
STANDS_FOR = ("RUN", "demo", "five", "browser", "monday", "tuesday", "latest", "A", "B")
"""Names of the reader's runs in the documents."""


@dataclass(frozen=True)
class Example:
    document: str
    line: str
    not_run: str | None
    """Reason for not running the line."""

    @property
    def measures(self) -> bool:
        return MEASURES.match(self.line) is not None


def examples(document: Path) -> Iterator[Example]:
    for marks, *_, block in BLOCK.findall(document.read_text()):
        reasons = dict(MARK.findall(marks))
        lines = re.findall(r"^[#$] (.+)", block.replace("\\\n", ""), re.MULTILINE)
        used = set()
        for line in lines:
            found = [words for words in reasons if words in line]
            used.update(found)
            not_run = reasons[found[0]] if found else None
            yield Example(document.relative_to(ROOT).as_posix(), line, not_run)
        assert used == set(reasons), f"{document}: no line has {set(reasons) - used}"


EXAMPLES = [example for document in DOCUMENTS for example in examples(document)]
RUN_HERE = [each for each in EXAMPLES if each.not_run is None]


def each_once(measures: bool) -> dict[str, list[str]]:
    """Return lines by document, leaving out those that differ only in the name of a run or in the
    comment."""
    names = rf"\b(fscost-runs/)?({'|'.join(STANDS_FOR)})\b"
    seen = set()
    lines: dict[str, list[str]] = {}
    for each in RUN_HERE:
        known = re.sub(names, "RUN", each.line.partition("   #")[0].rstrip())
        if each.measures == measures and known not in seen:
            seen.add(known)
            lines.setdefault(each.document, []).append(each.line)
    return lines


def test_no_command_hides_from_this_test() -> None:
    """A command in a block of another language, or outside of blocks, would be neither run nor
    marked."""
    assert len(EXAMPLES) > 60
    assert len(RUN_HERE) > len(EXAMPLES) // 2
    hidden = [
        (document.name, line)
        for document in DOCUMENTS
        for line in BLOCK.sub("", document.read_text()).splitlines()
        if re.match(rf"\s*([#$] )?fscost ({'|'.join(COMMANDS)}) ", line)
    ]
    assert hidden == []


def run(line: str, folder: Path, seconds: int) -> str:
    """Run a line as a reader types it, with the program of this checkout, and return its output."""
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {"PATH": path, "HOME": str(folder), "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run."""
    folder = tmp_path_factory.mktemp("reader")
    run(MAKE_RUN, folder, 300)
    return folder / "made"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The files and runs that a document assumes."""
    (tmp_path / "fscost-runs").mkdir()
    for place in (tmp_path, tmp_path / "fscost-runs"):
        for name in STANDS_FOR:
            (place / name).symlink_to(made)
    for name in ("RECORDING", "recording.fscost"):
        (tmp_path / name).symlink_to(made / "cells/ext4.0/recording.fscost")
    (tmp_path / "cells").symlink_to(made / "cells")
    run("fscost devices sd-card-32gb --toml > my-card.toml", tmp_path, 60)
    return tmp_path


READ, MEASURE = each_once(measures=False), each_once(measures=True)


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("document", some(READ, 1, ["README.md"]))
def test_its_lines_run(document: str, folder: Path) -> None:
    for line in READ[document]:
        run(line, folder, 300)


@pytest.mark.root
@pytest.mark.long
@pytest.mark.parametrize("document", MEASURE)
def test_its_lines_measure(document: str, tmp_path: Path) -> None:
    for line in MEASURE[document]:
        once = re.sub(r" -r \d+", "", line).replace("fscost compare ", "fscost compare -r 1 ")
        assert run(once, tmp_path, 1200)
