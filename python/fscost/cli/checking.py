"""`fscost doctor`, once its command line is parsed."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from fscost import host
from fscost.cli.lines import print_document, print_lines
from fscost.errors import HostError, InputError
from fscost.host import Check
from fscost.lab import vm
from fscost.lab.cell.binaries import find_binaries
from fscost.view.grid import plain

_ANSWER_S = 120
"""Time for a machine of a cluster to answer: it boots a guest to check KVM."""


Labs = dict[str, list[Check]]
"""Checks of each lab, by its title."""


def check_labs(fetch: Sequence[str], on_cluster: str | None, *, is_json: bool) -> None:
    """Check the labs here or on a cluster, and print what they need."""
    if on_cluster is None:
        for name in fetch:
            vm.fetch(name, _say)
        found = {"": labs()}
    elif fetch:
        raise InputError(
            "--fetch is about this machine, and --on-cluster checks others",
            "leave one of the two out: a machine fetches a kernel when it first needs it",
        )
    else:
        found = _of_cluster(on_cluster)
    if is_json:
        entries = [
            {
                "machine": machine,
                "lab": title.partition(":")[0].removeprefix("Lab "),
                "can_run": not _stopped(checks),
                "checks": [asdict(check) for check in checks],
            }
            for machine, each in found.items()
            for title, checks in each.items()
        ]
        print_document("doctor", {"labs": entries})
    else:
        for machine, each in found.items():
            _print(machine, each)
    if all(_stopped(checks) for each in found.values() for checks in each.values()):
        raise typer.Exit(2)


def labs() -> Labs:
    """Check the labs on this machine."""
    binaries: list[tuple[str, Path | None]]
    agent = None
    try:
        found = find_binaries()
        agent = found.agent
        binaries = [("fscost-agent", found.agent), ("fscost-disk", found.disk)]
    except HostError as error:
        binaries = [(error.what.partition(" ")[0], None)]
    native = host.checks(binaries)
    needed = {name for name, path in binaries if path is None}
    return {
        "Lab native: this kernel, as root": native,
        "Lab vm: guests, as any user": [
            *(check for check in native if check.name in needed),
            *vm.checks(agent),
        ],
    }


def _of_cluster(address: str) -> dict[str, Labs]:
    """Check the labs of each machine. One that does not answer has no lab."""
    from fscost.run.executor.ray import RayCluster, same_version

    cluster = RayCluster(address, _say)
    try:
        found = cluster.each(same_version, host.fscost_version(), labs, within_s=_ANSWER_S)
    finally:
        cluster.close()
    return {
        machine: {"Worker": [Check("fscost", False, answer, required=True)]}
        if isinstance(answer, str)
        else answer
        for machine, answer in sorted(found.items())
    }


def _say(line: str) -> None:
    print(plain(line), file=sys.stderr, flush=True)


def _print(machine: str, labs: Mapping[str, Sequence[Check]]) -> None:
    width = max(len(check.name) for checks in labs.values() for check in checks)
    on = f"Machine {machine}: " if machine else ""
    for title, checks in labs.items():
        print(f"{on}{title}; {'cannot run here' if _stopped(checks) else 'can run here'}")
        print_lines([_entry(check, width) for check in checks])


def _stopped(checks: Sequence[Check]) -> bool:
    return any(check.required and not check.ok for check in checks)


def _entry(check: Check, width: int) -> tuple[str, str]:
    mark = "ok     " if check.ok else "NEEDED " if check.required else "missing"
    remedy = f": {check.remedy}" if check.remedy else ""
    return f"  {mark}  {check.name:{width}}", f"{check.detail}{remedy}"
