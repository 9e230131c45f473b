"""`fscost show`: the tables of a finished run, again or in another format."""

from typing import Annotated

import typer

from fscost import wear
from fscost.cli import shared
from fscost.cli.output.emit import Outputs
from fscost.results import load
from fscost.view.per import parse_per
from fscost.view.run import Choice


def show(
    run: shared.Run,
    json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object on standard output, in place of the table."),
    ] = False,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="The rows as CSV; - for standard output.")
    ] = None,
    markdown: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The tables as Markdown; - for standard output."),
    ] = None,
    trust: shared.TrustRun = False,
    ssd: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|FILE.toml",
            help="Add NAND bytes and the lifetime of this device, from the recordings kept.",
        ),
    ] = None,
    by_disk: Annotated[
        bool, typer.Option("--by-disk", help="Add a row for each disk to every table and export.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Add intervals, verdicts and more columns.")
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Metric to sort and compare by. (default: the run's metric)"
        ),
    ] = None,
    per: Annotated[
        str | None,
        typer.Option(
            metavar="N:WORD",
            help=(
                "Number and name of the workload's operations (500:tx), for bytes per operation."
            ),
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="Profile that the others are compared with. (default: the run's baseline)",
        ),
    ] = None,
) -> None:
    """Print the tables of a finished run again, in any format."""
    outputs = Outputs(
        json,
        csv,
        markdown,
        Choice(
            metric or "", baseline or "", by_disk, wide, None if per is None else parse_per(per)
        ),
    )
    outputs.check()
    results = load(run, trust=trust)
    outputs.emit(results if ssd is None else wear.replayed(results, wear.find(ssd)))
