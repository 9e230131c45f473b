"""`fscost doctor`: what can run here, and the command that enables the rest."""

from pathlib import Path

import typer

from fscost import host
from fscost.cli.output.grid import plain
from fscost.errors import HostError
from fscost.lab.cell.binaries import find_binaries


def doctor() -> None:
    """Look at what the native lab needs; exit 2 when no cell can run here."""
    binaries: list[tuple[str, Path | None]]
    try:
        found = find_binaries()
        binaries = [("fscost-agent", found.agent), ("fscost-disk", found.disk)]
    except HostError as error:
        binaries = [(error.what.partition(" ")[0], None)]
    checks = host.checks(binaries)
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "ok     " if check.ok else "NEEDED " if check.required else "missing"
        remedy = f": {check.remedy}" if check.remedy else ""
        print(plain(f"{mark}  {check.name:{width}}  {check.detail}{remedy}"))
    if any(check.required and not check.ok for check in checks):
        raise typer.Exit(2)
