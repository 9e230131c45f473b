"""`fscost ls`: the runs of a folder, the newest last."""

from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.lines import print_lines
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.view.runs import listed


def ls(
    folder: Annotated[
        Path, typer.Argument(parser=some_path, metavar="DIR", help="Folder that holds runs.")
    ] = Path("fscost-runs"),
    trust: Annotated[
        bool, typer.Option("--trust", help="Read runs that another user owns or can write to.")
    ] = False,
) -> None:
    """List the runs in a folder, each with its main result."""
    found = listed(folder, trust=trust)
    if not found:
        raise InputError(f"{folder} holds no runs", "name the folder that holds runs")
    print_lines([(str(run.folder), run.answer) for run in found])
