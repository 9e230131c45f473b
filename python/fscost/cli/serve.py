"""`fscost serve`: the runs of a folder as a small site on this machine."""

import sys
from typing import Annotated

import typer

from fscost.cli import shared
from fscost.errors import HostError, InputError
from fscost.view.grid import plain

PORT = 8765


def serve(
    folder: shared.Runs = shared.DEFAULT_RUNS,
    port: Annotated[
        int, typer.Option(metavar="NUMBER", help="TCP port; 0 for any that is free.")
    ] = PORT,
    trust: shared.TrustRuns = False,
) -> None:
    """Serve the runs in a folder as a small web site on this machine.

    The site lists and searches the runs, shows the report of each, and compares any two. It listens
    on 127.0.0.1 alone and changes nothing. Ctrl-C ends it.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder",
            "name the folder that holds runs, or start one: fscost compare",
        )
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port} is not a TCP port", "give 0 to 65535")
    # Importing charts takes a second, and a wrong folder must be reported at once.
    from fscost.report.site import Site

    try:
        site = Site(folder, port, trust=trust)
    except OSError as error:
        raise HostError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}",
            "give another --port, or 0 for any that is free",
        ) from None
    with site:
        print(f"{site.address} shows {plain(str(folder))}; Ctrl-C ends it", flush=True)
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
            raise
