"""Where a run's tables go: the terminal by default, files and standard output on request."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from fscost.cli.output import machine, markdown, terminal
from fscost.cli.output.view import View, view
from fscost.errors import InputError
from fscost.results import RunResults, replace

STDOUT = "-"


@dataclass(frozen=True)
class Outputs:
    """`csv` and `markdown` are file names, `-` for standard output; `json` goes to standard output."""

    json: bool = False
    csv: str | None = None
    markdown: str | None = None

    def check(self) -> None:
        """Before the run, not after it: only one may have standard output, and files must be writable."""
        if [self.json, self.csv == STDOUT, self.markdown == STDOUT].count(True) > 1:
            raise InputError(
                "two tables would be mixed on standard output",
                "leave one of --json, --csv - and --markdown - there, and name files for the others",
            )
        for option, name in (("--csv", self.csv), ("--markdown", self.markdown)):
            if name is None or name == STDOUT:
                continue
            path = Path(name)
            if path.is_dir() or not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
                raise InputError(f"{option} {name} cannot be written", "name a file in a folder that is there")

    def emit(self, results: RunResults) -> None:
        """Files first; then standard output: the table for people, unless something else was sent there."""
        shown = view(results)
        texts: list[tuple[str | None, Callable[[], str]]] = [
            (STDOUT if self.json else None, lambda: machine.json_text(results, shown)),
            (self.csv, lambda: machine.csv_text(shown)),
            (self.markdown, lambda: markdown.text(shown, str(results.folder))),
        ]
        for name, text in texts:
            if name is not None and name != STDOUT:
                _write(Path(name), text())
        on_stdout = [text for name, text in texts if name == STDOUT]
        if not on_stdout:
            terminal.print_view(shown, sys.stdout, str(results.folder))
            return
        sys.stdout.write(on_stdout[0]())
        _problems(shown, sys.stderr)


def _write(path: Path, text: str) -> None:
    replace(path, lambda file: file.write(text.encode("utf-8", "replace")))


def _problems(shown: View, file: TextIO) -> None:
    for line in shown.problems:
        print(line, file=file)
