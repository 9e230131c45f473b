"""The test cases as data: each is one table of a `*.toml` file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LEFT_OUT = HERE / "left-out.toml"
TRIAL = 445
"""Number of cases in the trial, which are numbered from 0."""


@dataclass(frozen=True)
class Case:
    """One bad input.

    `arguments` run the program in a fork of a warm process. `shell` is bash that runs `$F` in a
    separate process, for cases where streams, limits, signals or Python's startup matter. `prepare`
    is bash that runs first; `after` is bash that must succeed at the end. `env`, `cwd` and `inside`
    (bash in the mount namespace of the case) apply to `arguments`. `$W` is the case's working
    directory, `$B` a folder with finished runs `run` and `other` and a recording `plain.fscost`
    that is the same everywhere, `$R` the recording of the first cell of `run`. `exit` is the exit
    status, or a list of allowed ones. `says` is a pattern that the output must match. `remedy` is
    true if an error must have a second line with a remedy; all errors have one, except failed
    cells. `limit_s` is the time after which the case counts as hung. `trial` is its number in the
    trial that found it.
    """

    name: str
    file: str = ""
    arguments: tuple[str, ...] = ()
    shell: str = ""
    prepare: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    inside: str = ""
    after: str = ""
    exit: tuple[int, ...] = (2,)
    says: str = ""
    remedy: bool = True
    limit_s: int = 120
    trial: int | None = None


def load() -> list[Case]:
    """Return all cases, in the order of the files."""
    return [
        _case(file.stem, number, table)
        for file in _files()
        for number, table in enumerate(tomllib.loads(file.read_text())["case"])
    ]


def left_out() -> dict[int, str]:
    """Return the reasons for cases that do not run, by number in the trial."""
    entries = tomllib.loads(LEFT_OUT.read_text())["left_out"]
    return {number: entry["because"] for entry in entries for number in entry["trials"]}


def _files() -> list[Path]:
    return [file for file in sorted(HERE.glob("*.toml")) if file != LEFT_OUT]


def _case(stem: str, number: int, table: dict[str, Any]) -> Case:
    values = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    if isinstance(values.get("exit"), int):
        values["exit"] = (values["exit"],)
    return Case(name=f"{stem}-{values.pop('name', number)}", file=stem, **values)
