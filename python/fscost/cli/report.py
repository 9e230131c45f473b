"""`fscost report`: a run as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from fscost import files
from fscost.cli import shared
from fscost.cli.usage import some_path

SUFFIX = "report.html"


def report(
    run: shared.Run,
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
    ssd: shared.ModelledDevice = None,
    array: shared.ModelledArray = None,
    trust: shared.TrustRun = False,
) -> None:
    """Write one HTML file with the answers, charts and tables of a run."""
    print(write(run, out, ssd, array, trust=trust))


def write(
    run: Path, out: Path | None, ssd: str | None = None, array: str | None = None, *, trust: bool
) -> Path:
    """Write the report of a run to a file, or to its folder, and return the path."""
    path, follow = out or run / SUFFIX, out is not None
    files.check_output(path, follow=follow)
    from fscost import wear
    from fscost.results import salvaged

    device, shape = wear.of_options(ssd, array)
    results, damage = salvaged(run, trust=trust)
    # Importing charts takes a second, and a wrong path must be reported at once.
    from fscost.report.html import html_text
    from fscost.view.page import page

    text = html_text(page(results, damage, device, shape))
    with files.replacing(path, follow=follow) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    return path
