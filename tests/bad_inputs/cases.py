"""The cases as data: one table of `*.toml` each."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LEFT_OUT = HERE / "left-out.toml"
TRIAL = 445
"""How many cases the trial had; they are numbered from 0."""


@dataclass(frozen=True)
class Case:
    """One bad input.

    `arguments` run the program in a fork of a warm process; `shell` is bash that runs `$F`, as a
    process of its own, where streams, limits,
    signals or the start of Python matter. `prepare` is bash that comes first, and `after` bash that
    must succeed when it is over. `env`, `cwd` and `inside` (bash in
    the mount namespace of the case) are for `arguments`. `$W` is the case's working directory, `$B`
    a folder with finished runs `run` and `other` and a recording `plain.fscost` that is the same
    everywhere, `$R` the recording of the first cell of `run`.
    `exit` is the exit status, of several any. `says` is a pattern that the output must have.
    `remedy` says whether an error must have a second line with what to do, which all but failed
    cells have.
    `limit_s` is when it counts as one that hangs. `trial` is its number in the trial that found it.
    """

    name: str
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
    """All, in the order of the files."""
    return [
        _case(file.stem, number, table)
        for file in _files()
        for number, table in enumerate(tomllib.loads(file.read_text())["case"])
    ]


def left_out() -> dict[int, str]:
    """By number in the trial, why a case is not run."""
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
    return Case(name=f"{stem}-{values.pop('name', number)}", **values)
