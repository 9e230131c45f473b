"""Destinations of a run's tables: the terminal by default, files and standard output on request."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fscost import files
from fscost.errors import FscostError, InputError
from fscost.report import machine, markdown, terminal
from fscost.results import RunResults
from fscost.view.grid import Grid, plain
from fscost.view.run import Choice, view

STDOUT = "-"


@dataclass(frozen=True)
class Outputs:
    """Requested outputs. `csv` and `markdown` are file names, or `-` for standard output. `json`
    goes to standard output. `is_brief`: the readable output is the answer alone."""

    json: bool = False
    csv: str | None = None
    markdown: str | None = None
    choice: Choice = field(default_factory=Choice)
    is_brief: bool = False

    def check(self) -> None:
        """Check before the run that at most one output uses standard output, and that files are
        writable."""
        if [self.json, self.csv == STDOUT, self.markdown == STDOUT].count(True) > 1:
            raise InputError(
                "two tables would be mixed on standard output",
                "send only one of --json, --csv - and --markdown - there, and name files for"
                " the others",
            )
        if self.is_brief and (self.json or self.choice.is_wide):
            raise InputError(
                "--brief prints the answer alone", "drop --brief, or drop --json and --wide"
            )
        for option, name in (("--csv", self.csv), ("--markdown", self.markdown)):
            # `Path` would drop the slash.
            if name is not None and (not name or name.endswith("/")):
                raise InputError(
                    f"{option} {name!r} is not a path of a file",
                    "name a file, or - for standard output",
                )
            if name is not None and name != STDOUT:
                _check(option, Path(name))

    def emit(self, results: RunResults) -> None:
        """Write files first, then standard output: the readable table, unless another output was
        requested there."""
        shown = view(results, self.choice)
        is_for_people = self.give(
            json=lambda: machine.json_text(results, shown),
            csv=lambda: machine.csv_text(shown),
            markdown=lambda: markdown.text(shown, str(results.folder)),
        )
        if is_for_people and self.is_brief:
            terminal.print_parts(shown.headline, [], sys.stdout)
        elif is_for_people:
            terminal.print_view(shown, sys.stdout, str(results.folder))
        else:
            for line in shown.problems:
                print(plain(line), file=sys.stderr)

    def emit_tables(
        self,
        title: str,
        grids: Sequence[Grid],
        notes: Sequence[str],
        *,
        json: Callable[[], str],
        rows: Callable[[], Sequence[Mapping[str, Any]]],
        lead: Sequence[str] = (),
    ) -> None:
        """Write several tables, with notes below the first and its answer, `lead`, above it.
        `rows`: those of the CSV file."""
        is_for_people = self.give(
            json=json,
            csv=lambda: _csv_text(rows()),
            markdown=lambda: markdown.parts(title, grids, notes, lead),
        )
        if is_for_people:
            terminal.print_parts(title, [*lead, *grids[:1], *notes, *grids[1:]], sys.stdout)

    def give(
        self, *, json: Callable[[], str], csv: Callable[[], str], markdown: Callable[[], str]
    ) -> bool:
        """Write each requested text. Return True if standard output is still free for the readable
        table."""
        texts = [(STDOUT if self.json else None, json), (self.csv, csv), (self.markdown, markdown)]
        for name, text in texts:
            if name is not None and name != STDOUT:
                write(Path(name), text())
        on_stdout = [text for name, text in texts if name == STDOUT]
        if on_stdout:
            sys.stdout.write(plain(on_stdout[0]()))
        return not on_stdout


def _check(option: str, path: Path) -> None:
    try:
        files.check_output(path)
    except FscostError as error:
        raise type(error)(f"{option} {error.what}", error.remedy) from error


def write(path: Path, text: str) -> None:
    """Write text to a file named by the user, or by fscost in a run's folder."""
    with files.replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))


def _csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    return machine.csv_of(list(rows[0]) if rows else [], (row.values() for row in rows))
