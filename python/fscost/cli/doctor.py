"""`fscost doctor`: labs that can run here, and the command that enables the rest. Its help imports
nothing but its options."""

from typing import Annotated

import typer

from fscost.cli import shared


def doctor(
    fetch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERIES",
            help="Fetch a kernel of Debian's for guests first, such as 6.12; repeatable.",
        ),
    ] = None,
    on_cluster: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto",
            help="Check each machine of this Ray cluster instead (docs/clusters.md).",
        ),
    ] = None,
    json: shared.Json = False,
) -> None:
    """Check what the two labs need; exit 2 if neither can run here."""
    from fscost.cli.checking import check_labs

    check_labs(fetch or (), on_cluster, is_json=json)
