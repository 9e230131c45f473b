"""`fscost doctor`: labs that can run here, and the command that enables the rest."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fscost import host
from fscost.cli import shared
from fscost.cli.lines import print_document, print_lines
from fscost.errors import HostError
from fscost.host import Check
from fscost.lab import vm
from fscost.lab.cell.binaries import find_binaries
from fscost.view.grid import plain


def doctor(
    fetch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERIES",
            help="Fetch a kernel of Debian's for guests first, such as 6.12; repeatable.",
        ),
    ] = None,
    json: shared.Json = False,
) -> None:
    """Check what the two labs need; exit 2 if neither can run here."""
    for name in fetch or ():
        vm.fetch(name, lambda line: print(plain(line), file=sys.stderr, flush=True))
    binaries: list[tuple[str, Path | None]]
    agent = None
    try:
        found = find_binaries()
        agent = found.agent
        binaries = [("fscost-agent", found.agent), ("fscost-disk", found.disk)]
    except HostError as error:
        binaries = [(error.what.partition(" ")[0], None)]
    labs = {
        "Lab native: this kernel, as root": host.checks(binaries),
        "Lab vm: guests, as any user": vm.checks(agent),
    }
    if json:
        entries = [
            {
                "lab": title.partition(":")[0].removeprefix("Lab "),
                "can_run": not _stopped(checks),
                "checks": [asdict(check) for check in checks],
            }
            for title, checks in labs.items()
        ]
        print_document("doctor", {"labs": entries})
    else:
        _print(labs)
    if all(_stopped(checks) for checks in labs.values()) or agent is None:
        raise typer.Exit(2)


def _print(labs: Mapping[str, Sequence[Check]]) -> None:
    width = max(len(check.name) for checks in labs.values() for check in checks)
    for title, checks in labs.items():
        print(f"{title}; {'cannot run here' if _stopped(checks) else 'can run here'}")
        print_lines([_entry(check, width) for check in checks])


def _stopped(checks: Sequence[Check]) -> bool:
    return any(check.required and not check.ok for check in checks)


def _entry(check: Check, width: int) -> tuple[str, str]:
    mark = "ok     " if check.ok else "NEEDED " if check.required else "missing"
    remedy = f": {check.remedy}" if check.remedy else ""
    return f"  {mark}  {check.name:{width}}", f"{check.detail}{remedy}"
