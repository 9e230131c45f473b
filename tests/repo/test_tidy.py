"""Length limits of files, functions, lines and commit subjects."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.repo.test_repository import ROOT, repository_files

FILE_LINES = 500
FUNCTION_LINES = 70
COLUMNS = 100
SUBJECT_COLUMNS = 72
FIRST_TIDY_COMMIT = "c02a04890e74aa05e26aac889db197368c4ac93e"
"""First commit whose subject must obey the limit; earlier subjects stay as they are."""
CODE = {".py", ".pyi", ".rs", ".sh"}

RUST_FUNCTION = re.compile(r"\s*(?:pub(?:\([^)]*\))? |const |unsafe |async )*fn (\w+)")
WIDE_LINES = 120
"""Maximum number of wide lines. Most are unbroken messages; the formatters break everything
else."""


def code_files() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for path in repository_files()
        if path.suffix in CODE
    }


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            yield node.name, node.end_lineno - node.lineno + 1


def rust_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yield the functions of text formatted by rustfmt, with their lengths: a function ends with a
    brace in the column where it begins."""
    begun: list[tuple[str, int, int]] = []
    for number, line in enumerate(text.splitlines()):
        column = len(line) - len(line.lstrip())
        if "fn " in line and (found := RUST_FUNCTION.match(line)):
            begun.append((found[1], number, column))
        if begun and line.lstrip().startswith("}") and column == begun[-1][2]:
            name, first, _ = begun.pop()
            yield name, number - first + 1
        elif begun and line.endswith((";", "}")) and begun[-1][1] == number:
            begun.pop()  # without a body, or with one on this line


def too_long(files: dict[str, str]) -> dict[str, int]:
    """Return the functions that exceed the limit, with their lengths."""
    parsers = {".py": python_functions, ".rs": rust_functions}
    return {
        f"{name}: {function}": lines
        for name, text in files.items()
        if (parser := parsers.get(Path(name).suffix)) is not None
        for function, lines in parser(text)
        if lines > FUNCTION_LINES
    }


def too_wide_lines(files: dict[str, str]) -> list[str]:
    return [
        f"{name}:{number}: {len(line)} columns"
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS
    ]


def subjects() -> list[str]:
    command = ["git", "-c", f"safe.directory={ROOT}", "log", "--format=%s"]
    known = subprocess.run(
        [*command, "-1", FIRST_TIDY_COMMIT], cwd=ROOT, check=False, capture_output=True
    )
    span = [f"{FIRST_TIDY_COMMIT}..HEAD"] if known.returncode == 0 else ["-1"]
    done = subprocess.run([*command, *span], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_files_are_short() -> None:
    lengths = {name: len(text.splitlines()) for name, text in code_files().items()}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


def test_functions_are_short() -> None:
    assert too_long(code_files()) == {}


def test_lines_are_narrow() -> None:
    wide = too_wide_lines(code_files())
    assert len(wide) <= WIDE_LINES, "\n".join(wide)


def test_commit_subjects_are_short() -> None:
    assert [subject for subject in subjects() if len(subject) > SUBJECT_COLUMNS] == []


def test_long_functions_are_seen() -> None:
    """The check covers both languages and signatures that span several lines."""
    body = "    x\n" * FUNCTION_LINES
    rust = (
        f"impl X {{\n    pub fn long(\n        a: u8,\n    ) {{\n{body}    }}\n\n    fn"
        " short(&self);\n}\n"
    )
    python = f"def short(): ...\ndef long(\n    a,\n):\n{body}"
    assert too_long({"a.rs": rust, "b.py": python}) == {"a.rs: long": 74, "b.py: long": 73}
