"""`fscost crash`: whether file systems keep their promises when the power goes."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscost.cli import options, shared
from fscost.cli.declare import option, with_fields
from fscost.cli.examine import Earlier, examine, request
from fscost.cli.lines import say
from fscost.cli.measure import alone, execute
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.request import Place, prepared

if TYPE_CHECKING:
    from fscost.crash.explore import Limits

_DEFAULT = ("ext4", "ext4 -o nobarrier", "ext4 -O ^has_journal", "xfs", "btrfs")


@dataclass(frozen=True)
class Asked:
    """Options of `fscost crash`, as given."""

    source: Annotated[
        Path | None,
        typer.Argument(
            parser=some_path,
            metavar="RUN",
            help="A run of this command, to examine again. (default: measure the profiles)",
            show_default=False,
        ),
    ] = None
    on: Annotated[
        shared.Repeated,
        typer.Option(metavar="PROFILE", help="Profile to examine, as for compare; repeatable."),
    ] = None
    workload: str = option(
        default="files",
        metavar="NAME",
        help="What makes the promises: files, sqlite, sqlite-extra, sqlite-wal.",
    )
    rounds: int = option(
        default=6, min=1, max=1000, help="Rounds of the workload, of four promises each."
    )
    cuts: int = option(default=40, min=1, max=10_000, help="Instants of a power cut.")
    states: int = option(
        default=24, min=4, max=10_000, help="Maximum number of states for each instant."
    )
    device: str = option(
        default="reorder-4k",
        metavar="NAME",
        help="What survives: reorder-4k, reorder-512, in-order, power-loss-protected.",
    )
    lose_disks: bool = option(
        default=False,
        help="Then lose each disk beside the main one (of btrfs, each disk), and try each way back"
        " that the manual pages offer.",
    )
    seed: shared.Seed = 1
    state: int | None = option(
        min=1,
        metavar="N",
        help="With RUN: show which writes this state kept and lost, and what each was.",
    )
    profile: str | None = option(
        metavar="NAME", help="With --state: the profile. (default: the only one)"
    )
    image: Path | None = option(
        parser=some_path,
        metavar="FILE",
        help="With --state: write that disk, sparse (others: FILE.NAME).",
    )
    trust: shared.TrustRecordings = False
    out: options.Out = None
    wait: options.Wait = False
    json: shared.Json = False

    def check(self) -> "Limits":
        """Refuse options that contradict each other, and return the limits."""
        from fscost.crash.explore import DEVICES, Limits
        from fscost.crash.workloads import WORKLOADS

        _check_known("--workload", self.workload, WORKLOADS)
        _check_known("--device", self.device, DEVICES)
        if self.source is not None and (self.on or self.out is not None):
            raise InputError("RUN was measured already", "drop --on and --out, or RUN")
        if self.source is None and self.state is not None:
            raise InputError("--state needs a RUN", "name a run of `fscost crash`")
        if self.state is None and (self.profile is not None or self.image is not None):
            raise InputError("--profile and --image need --state", "give --state, or drop them")
        return Limits(self.cuts, self.states, self.seed, self.device)


@with_fields
def crash(asked: Asked) -> None:
    """Cut the power of recorded disks, and check what each file system kept.

    Each profile runs a workload that appends to, replaces, creates and overwrites files, each time
    with the calls that make it durable, or SQLite transactions (--workload). The recording is cut
    at many instants: what was not durable may have reached the disk or not. Each such state is
    mounted, read and checked by fsck.

    fscost crash --on ext4 --on 'ext4 -o nobarrier'
    """
    limits = asked.check()
    if asked.source is not None:
        earlier = Earlier(asked.source, trust=asked.trust)
        with alone("native", wait=asked.wait):
            if asked.state is None:
                earlier.examine(limits, lose_disks=asked.lose_disks, is_json=asked.json)
            else:
                earlier.show(asked.state, asked.profile, asked.image, is_json=asked.json)
        return
    found = prepared(
        request(asked.on or _DEFAULT, asked.workload, asked.rounds, asked.seed),
        Place("native", asked.out, wait=asked.wait),
        say,
        sys.argv,
    )
    for each in found.spec.profiles:
        _check(each.name, each.type, is_array=each.array is not None)
    with alone("native", wait=asked.wait):
        outcome = execute(found)
        if outcome.interrupted:
            raise typer.Exit(130)
        examine(
            outcome.results,
            asked.workload,
            limits,
            lose_disks=asked.lose_disks,
            is_json=asked.json,
        )
    raise typer.Exit(outcome.exit_code)


def _check_known(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise InputError(f"{name} {value!r} is unknown", f"one of: {', '.join(known)}")


def _check(name: str, type_: str, *, is_array: bool) -> None:
    from fscost.crash.explore import TYPES

    if type_ not in TYPES:
        raise InputError(
            f"{name}: this kernel cannot examine states of {type_}",
            f"name profiles of {', '.join(TYPES)}",
        )
    if is_array:
        raise InputError(f"{name} is on an md array", "name profiles on disks of their own")
