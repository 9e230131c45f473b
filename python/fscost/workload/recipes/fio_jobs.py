"""fio job files of this package: `{input}/NAME.fio`."""

from importlib import resources
from pathlib import Path

from fscost.workload.recipes.request import Request


def make(folder: Path, request: Request) -> None:
    """Copy the job files; their sizes come from the environment of the step."""
    for file in (resources.files("fscost.workload") / "fio").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
