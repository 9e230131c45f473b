"""The cases as data: one table of `*.toml` each."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One bad input.

    `arguments` run the program; `shell` is bash that runs `$F`, as a process of its own, where streams, limits or signals matter.
    `prepare` is bash that comes first. `$B` is a folder with a finished run `run`, `$R` the recording of its first cell.
    `exit` is the exit status, of several any. `says` is a pattern that the output must have.
    `remedy` says whether an error must have a second line with what to do, which all but failed cells have.
    `limit_s` is when it counts as one that hangs.
    """

    name: str
    arguments: tuple[str, ...] = ()
    shell: str = ""
    prepare: str = ""
    exit: tuple[int, ...] = (2,)
    says: str = ""
    remedy: bool = True
    limit_s: int = 120


def load() -> list[Case]:
    """All, in the order of the files."""
    found = []
    for file in sorted(HERE.glob("*.toml")):
        for number, table in enumerate(tomllib.loads(file.read_text())["case"]):
            values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
            if isinstance(values.get("exit"), int):
                values["exit"] = (values["exit"],)
            name = f"{file.stem}-{values.pop('name', number)}"
            found.append(Case(name=name, **values))
    return found
