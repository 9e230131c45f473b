"""`fscost report`: a run as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from fscost import files, wear
from fscost.cli.usage import run_path, some_path
from fscost.results import salvaged

SUFFIX = "report.html"
Ssd = Annotated[
    str | None,
    typer.Option(
        "--ssd",
        metavar="DEVICE",
        help="Show the wear of this device. (default: the device of the run's --ssd)",
        show_default=False,
    ),
]
Array = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="LEVEL,members=N,…",
        help="Model each recorded disk as an md array of --ssd devices (docs/wear.md).",
        show_default=False,
    ),
]


def report(
    run: Annotated[
        Path,
        typer.Argument(
            parser=run_path, metavar="RUN", help="The folder that `fscost compare` made."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=some_path,
            metavar="FILE.html",
            help=f"Write the page to this file. (default: RUN/{SUFFIX})",
            show_default=False,
        ),
    ] = None,
    ssd: Ssd = None,
    array: Array = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Use a run's folder that another user owns or can write to."),
    ] = False,
) -> None:
    """Write one HTML file with the answers, charts and tables of a run."""
    path = out or run / SUFFIX
    files.check_output(path)
    device, shape = wear.of_options(ssd, array)
    results, damage = salvaged(run, trust=trust)
    # Importing charts takes a second, and a wrong path must be reported at once.
    from fscost.report.html import html_text
    from fscost.view.page import page

    text = html_text(page(results, damage, device, shape))
    with files.replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    print(path)
