"""`fscost open`: the report of a run in the browser."""

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli import shared
from fscost.cli.report import SUFFIX, write
from fscost.cli.usage import run_path

_SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables of which one is set where a browser can be shown. Elsewhere, webbrowser would start a
text browser in this terminal."""


def open(  # noqa: A001  # The name of the command.
    run: Annotated[
        Path | None,
        typer.Argument(
            parser=run_path,
            metavar="RUN",
            help="A run's folder. (default: fscost-runs/latest)",
            show_default=False,
        ),
    ] = None,
    trust: shared.TrustRun = False,
) -> None:
    """Open the report of a run in the browser; write it first if it is missing.

    The path of the page is printed; without a screen, that is all.
    """
    from fscost.results import MANIFEST

    folder = run or run_path(str(shared.DEFAULT_RUNS / "latest"))
    page = folder / SUFFIX
    if not page.exists() or page.stat().st_mtime < (folder / MANIFEST).stat().st_mtime:
        write(folder, None, trust=trust)
    print(page)
    if any(map(os.environ.get, _SCREENS)):
        webbrowser.open(page.absolute().as_uri())
