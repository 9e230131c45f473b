"""`fscost crash`: whether file systems keep their promises when the power goes. Its help imports
nothing but its options."""

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscost.cli import options, shared
from fscost.cli.declare import option, with_fields
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.request.model import AUTO

if TYPE_CHECKING:
    from fscost.crash.explore import Limits


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
        help="What makes the promises: files; sqlite, sqlite-extra, sqlite-wal; postgresql;"
        " sequences, sequences-2, sequences-3 (system calls), or one sequence; or what promises"
        " nothing: unsynced. (default: files)",
    )
    rounds: int = option(
        default=6,
        min=1,
        max=1000,
        help="Rounds of the workload: four changes, ten sequences, or ten seconds each.",
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
        help="Then lose each disk beside the main one (of btrfs and md, each disk), and try each way"
        " back that the manual pages offer.",
    )
    again: int = option(
        default=0,
        min=0,
        max=1000,
        metavar="N",
        help="Then record the recovery of up to 32 states of each profile, and cut it too: N second"
        " states of each.",
    )
    seed: shared.Seed = 1
    state: str | None = option(
        metavar="N[.K]",
        help="With RUN: show which writes this state (or second state K after it) kept and lost,"
        " and what each was.",
    )
    profile: str | None = option(
        metavar="NAME", help="With --state: the profile. (default: the only one)"
    )
    image: Path | None = option(
        parser=some_path,
        metavar="FILE",
        help="With --state: write that disk, sparse (others: FILE.NAME).",
    )
    script: Path | None = option(
        parser=some_path,
        metavar="FILE",
        help="With --state: write a shell script that shows the fault, and needs no fscost.",
    )
    xfstests: Path | None = option(
        parser=some_path,
        metavar="FILE",
        help="With --state: write a test for xfstests that looks for the fault (FILE.out: its"
        " output).",
    )
    minimise: bool | None = option(
        "--minimise/--no-minimise",
        default=None,
        show_default=False,
        help="Lose as few blocks as still break the same promise: with --state, in that state, else"
        " in one of each profile with faults, and then find the fewest operations that have that"
        " fault. (default: without --state, in the native lab)",
    )
    controls: bool = option(
        default=False,
        help="Examine profiles whose faults are known, and some that must have none; exit 1 if that"
        " is not what is found.",
    )
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Use a RUN that another user owns or can write to, or that this machine did not"
            " record; guests examine its states, unless --lab native says otherwise.",
        ),
    ] = False
    lab: Annotated[
        str,
        typer.Option(
            metavar="native|vm",
            help="Record and examine on this kernel as root, or in guests. (default: native if it"
            " can run here)",
            show_default=False,
        ),
    ] = AUTO
    kernel: shared.Repeated = option(
        metavar="SERIES|host|VMLINUZ",
        help="Kernel of guests: Debian's (such as 6.12), this host's, or an image; repeat to compare.",
    )
    modules: shared.Repeated = option(
        metavar="DIR",
        help="Module folder (/lib/modules/VERSION) of each --kernel image, in the same order.",
    )
    out: options.Out = None
    resume: Path | None = option(
        parser=some_path,
        metavar="DIR",
        help="Resume an interrupted examination, with the options that it began with.",
    )
    wait: options.Wait = False
    brief: bool = option("--brief", default=False, help="Print the answer alone.")
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

    def check_resumed(self) -> None:
        """Refuse what --resume reads from the examination that it resumes."""
        for name in self._given_beside("resume", "trust", "wait", "brief", "json"):
            raise InputError(
                f"--resume and {name} cannot be combined",
                "leave it out: an examination is resumed with the options that it began with",
            )

    def check_controls(self) -> None:
        """Refuse what the controls decide themselves."""
        own = ("controls", "rounds", "cuts", "states", "seed", "out", "wait", "json")
        for name in self._given_beside(*own, *(("lab",) if self.lab == "native" else ())):
            raise InputError(f"--controls and {name} cannot be combined", "leave it out")

    def _check_measured(self) -> None:
        """Refuse what RUN, or its state, has decided already."""
        decided: dict[str, str] = {}
        if self.run is not None:
            decided["workload"] = "RUN"
        if self.state is not None:
            decided |= dict.fromkeys(("device", "again", "lose_disks"), "--state")
        for each in fields(self):
            if each.name in decided and getattr(self, each.name) != each.default:
                option = f"--{each.name.replace('_', '-')}"
                raise InputError(
                    f"{decided[each.name]} and {option} cannot be combined",
                    f"leave {option} out: it was decided when the run was made or examined",
                )

    def _given_beside(self, *own: str) -> Iterator[str]:
        """Yield the name of each other option that was given."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in own and value != each.default and value not in (None, []):
                yield "words" if each.name == "words" else f"--{each.name.replace('_', '-')}"

    def check(self) -> "Limits":
        """Refuse options that contradict each other, and return the limits."""
        from fscost.cli.examine import Number
        from fscost.crash.explore import DEVICES, Limits
        from fscost.crash.workloads import named

        if self.workload is not None:
            named(self.workload)
        _check_known("--device", self.device, DEVICES)
        if self.run is not None and (self.on or self.out is not None):
            raise InputError("RUN was measured already", "drop --on and --out, or RUN")
        self._check_measured()
        if self.command and self.workload is not None:
            raise InputError("--workload and a command are two workloads", "name one of them")
        if self.prepare and not self.command:
            raise InputError("--prepare needs a command", "give one after --")
        if self.brief and self.state is not None:
            raise InputError("--brief and --state cannot be combined", "drop one of them")
        if self.run is None and self.state is not None:
            raise InputError("--state needs a RUN", "name a run of `fscost crash`")
        if self.run is None and self.trust:
            raise InputError("--trust needs a RUN", "name a run, or drop --trust")
        if self.state is None and (self.profile is not None or self.image is not None):
            raise InputError("--profile and --image need --state", "give --state, or drop them")
        is_first = self.state is not None and not Number.parse(self.state).second
        if (self.script or self.xfstests) and not is_first:
            raise InputError(
                "--script and --xfstests need the --state of a first cut", "such as --state 12"
            )
        if self.minimise and self.state is not None and Number.parse(self.state).second:
            raise InputError("--minimise needs the --state of a first cut", "such as --state 12")
        if self.lab not in (AUTO, "native", "vm"):
            raise InputError(f"--lab {self.lab!r} is unknown", "native or vm")
        if self.lab == "native" and self.kernel:
            raise InputError("--kernel is for guests", "leave out --lab native")
        return Limits(self.cuts, self.states, self.seed, self.device, self.again)


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
    from fscost.cli.crashing import crashed

    crashed(asked)


def _check_known(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise InputError(f"{name} {value!r} is unknown", f"one of: {', '.join(known)}")
