"""`fscost crash`: whether file systems keep their promises when the power goes."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscost.cli import options, shared
from fscost.cli.declare import option, with_fields
from fscost.cli.examine import Earlier, examine, promising, request
from fscost.cli.lines import say
from fscost.cli.measure import alone, execute
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.request.model import Place
from fscost.request.prepare import prepared

if TYPE_CHECKING:
    from fscost.crash.explore import Limits

_DEFAULT = ("ext4", "ext4 -o nobarrier", "ext4 -O ^has_journal", "xfs", "btrfs")


@dataclass(frozen=True)
class Asked:
    """Options of `fscost crash`, as given."""

    words: Annotated[
        shared.Repeated,
        typer.Argument(
            metavar="[RUN | -- COMMAND…]",
            help="A run, to examine its recordings; or a command to measure. Their promises are"
            " their fsync calls.",
            show_default=False,
        ),
    ] = None
    on: Annotated[
        shared.Repeated,
        typer.Option(metavar="PROFILE", help="Profile to examine, as for compare; repeatable."),
    ] = None
    workload: str | None = option(
        metavar="NAME",
        help="What makes the promises: files; sqlite, sqlite-extra, sqlite-wal; sequences,"
        " sequences-2, sequences-3 (system calls). (default: files)",
    )
    rounds: int = option(
        default=6,
        min=1,
        max=1000,
        help="Rounds of the workload, of four promises or ten sequences each.",
    )
    prepare: shared.Repeated = option(
        metavar="COMMAND",
        help="With -- COMMAND: run this shell command before, without power cuts; repeatable.",
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

    @property
    def command(self) -> list[str]:
        """What follows `--`."""
        return sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []

    @property
    def run(self) -> Path | None:
        """The run that was measured earlier."""
        words = list(self.words or ())
        before = words[: len(words) - len(self.command)]
        if len(before) > 1 or (before and self.command):
            raise InputError(
                f"{before[-1]!r} is one word too many", "name one RUN, or give -- before a command"
            )
        return some_path(before[0]) if before else None

    def check(self) -> "Limits":
        """Refuse options that contradict each other, and return the limits."""
        from fscost.crash.explore import DEVICES, Limits
        from fscost.crash.workloads import WORKLOADS

        if self.workload is not None:
            _check_known("--workload", self.workload, WORKLOADS)
        _check_known("--device", self.device, DEVICES)
        if self.run is not None and (self.on or self.out is not None):
            raise InputError("RUN was measured already", "drop --on and --out, or RUN")
        if self.command and self.workload is not None:
            raise InputError("--workload and a command are two workloads", "name one of them")
        if self.prepare and not self.command:
            raise InputError("--prepare needs a command", "give one after --")
        if self.run is None and self.state is not None:
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

    After --, any command is the workload: each fsync and fdatasync promises what the file held when
    it returned.

    fscost crash --on ext4 --on 'ext4 -o nobarrier'
    """
    from fscost.crash.workloads import COMMAND, WORKLOADS

    limits = asked.check()
    if (source := asked.run) is not None:
        earlier = Earlier(source, trust=asked.trust)
        with alone("native", wait=asked.wait):
            if asked.state is None:
                earlier.examine(limits, lose_disks=asked.lose_disks, is_json=asked.json)
            else:
                earlier.show(asked.state, asked.profile, asked.image, is_json=asked.json)
        return
    on = asked.on or _DEFAULT
    if asked.command:
        workload = COMMAND
        wanted = request(on, asked.prepare or (), asked.command, asked.seed)
    else:
        workload = asked.workload or next(iter(WORKLOADS))
        wanted = promising(on, workload, asked.rounds, asked.seed)
    found = prepared(wanted, Place("native", asked.out, wait=asked.wait), say, sys.argv)
    for each in found.spec.profiles:
        _check(each.name, each.type, is_array=each.array is not None)
    with alone("native", wait=asked.wait):
        outcome = execute(found)
        if outcome.interrupted:
            raise typer.Exit(130)
        examine(
            outcome.results,
            workload,
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
