"""`fscost ls`: the runs of a folder, the newest last."""

from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.lines import print_lines
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.results import MANIFEST, RunResults, load
from fscost.view.run import answer


def ls(
    folder: Annotated[
        Path, typer.Argument(parser=some_path, metavar="DIR", help="Folder that holds runs.")
    ] = Path("fscost-runs"),
    trust: Annotated[
        bool, typer.Option("--trust", help="Read runs that another user owns or can write to.")
    ] = False,
) -> None:
    """List the runs in a folder, with the answer of each."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no folder",
            "name the folder that holds runs, or start one: fscost compare",
        )
    found = sorted(
        each for each in folder.iterdir() if not each.is_symlink() and (each / MANIFEST).is_file()
    )
    if not found:
        raise InputError(f"{folder} holds no runs", "name the folder that holds runs")
    print_lines([(str(each), _told(each, trust=trust)) for each in found])


def _told(folder: Path, *, trust: bool) -> str:
    """What the run found, or why that cannot be read: one bad run hides no other."""
    try:
        results = load(folder, trust=trust)
    except InputError as error:
        return f"unreadable: {error.what}"
    return f"{_state(results)}{answer(results) or 'no cell finished'}"


def _state(results: RunResults) -> str:
    state = results.manifest.state
    return "" if state == "finished" else f"({state}) "
