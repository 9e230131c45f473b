"""`fscost crash`: whether file systems keep their promises when the power goes."""

import platform
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscost.cli import options, shared
from fscost.cli.controls import controls
from fscost.cli.declare import option, with_fields
from fscost.cli.examine import Earlier, Files, Number, examine
from fscost.cli.examiners import (
    Examined,
    chosen_lab,
    examiners_of,
    in_guests,
    natively,
    refuse_in_guests,
    refuse_natively,
)
from fscost.cli.lines import say
from fscost.cli.measure import alone, execute
from fscost.cli.output.emit import Outputs
from fscost.cli.promising import promising, request
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.request.model import AUTO, Place
from fscost.request.prepare import prepared

if TYPE_CHECKING:
    from fscost.crash.explore import Limits
    from fscost.crash.journal import Asked as AskedStates
    from fscost.lab.vm import VmLab

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
            help="Use a RUN that another user owns or can write to; guests examine its states.",
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
    def outputs(self) -> Outputs:
        """What the verdicts are printed as."""
        return Outputs(self.json, is_brief=self.brief)

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
        for name in self._given_beside("resume", "wait", "brief", "json"):
            raise InputError(
                f"--resume and {name} cannot be combined",
                "leave it out: an examination is resumed with the options that it began with",
            )

    def check_controls(self) -> None:
        """Refuse what the controls decide themselves."""
        own = ("controls", "rounds", "cuts", "states", "seed", "out", "wait", "json")
        for name in self._given_beside(*own, *(("lab",) if self.lab == "native" else ())):
            raise InputError(f"--controls and {name} cannot be combined", "leave it out")

    def _given_beside(self, *own: str) -> Iterator[str]:
        """Yield the name of each other option that was given."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in own and value and value != each.default:
                yield "words" if each.name == "words" else f"--{each.name.replace('_', '-')}"

    def check(self) -> "Limits":
        """Refuse options that contradict each other, and return the limits."""
        from fscost.crash.explore import DEVICES, Limits
        from fscost.crash.workloads import named

        if self.workload is not None:
            named(self.workload)
        _check_known("--device", self.device, DEVICES)
        if self.run is not None and (self.on or self.out is not None):
            raise InputError("RUN was measured already", "drop --on and --out, or RUN")
        if self.command and self.workload is not None:
            raise InputError("--workload and a command are two workloads", "name one of them")
        if self.prepare and not self.command:
            raise InputError("--prepare needs a command", "give one after --")
        if self.brief and self.state is not None:
            raise InputError("--brief and --state cannot be combined", "drop one of them")
        if self.run is None and self.state is not None:
            raise InputError("--state needs a RUN", "name a run of `fscost crash`")
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
    from fscost import profile
    from fscost.crash.journal import Journal
    from fscost.crash.workloads import COMMAND, FILES
    from fscost.lab.vm import VmLab

    asked.outputs.check()
    if asked.resume is not None:
        asked.check_resumed()
        with alone("native", wait=asked.wait):
            _resume(asked.resume, asked.outputs)
        return
    limits = asked.check()
    if asked.controls:
        asked.check_controls()
        with alone("native", wait=asked.wait):
            place = Place("native", asked.out, wait=asked.wait)
            raise typer.Exit(controls(place, limits, asked.rounds, is_json=asked.json))
    if asked.run is not None:
        with alone("native", wait=asked.wait):
            _again(asked, Earlier(asked.run, trust=asked.trust), limits)
        return
    on, kernels = asked.on or _DEFAULT, asked.kernel or ()
    lab = chosen_lab(asked.lab, [Examined.of(profile.resolve(each)) for each in on], kernels)
    workload = COMMAND if asked.command else asked.workload or FILES
    if asked.command:
        wanted = request(on, asked.prepare or (), asked.command, asked.seed, kernels)
    else:
        is_here = lab == "native"
        wanted = promising(on, workload, asked.rounds, asked.seed, kernels, is_native=is_here)
    wanted = replace(wanted, modules=tuple(asked.modules or ()))
    found = prepared(wanted, Place(lab, asked.out, wait=asked.wait), say, sys.argv)
    site = found.executor.site
    if isinstance(site, VmLab):
        _refuse_in_guests(asked, site)
    for each in found.spec.profiles:
        about = Examined.of(each)
        if isinstance(site, VmLab):
            refuse_in_guests(about, site)
        else:
            refuse_natively(about)
    with alone("native", wait=asked.wait):
        outcome = execute(found)
        if outcome.interrupted:
            raise typer.Exit(130)
        folder = outcome.results.folder
        kernel = "" if isinstance(site, VmLab) else platform.release()
        journal = Journal.begin(folder, _states(asked, workload, limits, lab, kernel))
        examine(outcome.results, journal, examiners_of(site, folder), asked.outputs)
    raise typer.Exit(outcome.exit_code)


def _refuse_in_guests(asked: Asked, lab: "VmLab") -> None:
    """Refuse a command whose calls have no place in the recording."""
    if asked.command and lab.guests.accelerated().is_emulated:
        raise InputError(
            "guests are emulated here: their clock is not that of the recording, so that the fsync"
            " calls of a command have no place in it",
            "name a --workload, or measure with --lab native",
        )


def _again(asked: Asked, earlier: Earlier, limits: "Limits") -> None:
    """Examine a run that was made earlier. States of a stranger are for guests."""
    from fscost.crash.journal import Journal
    from fscost.lab.vm import VmLab

    kernels = asked.kernel or ()
    if len(kernels) > 1 or asked.modules:
        raise InputError("RUN is examined by one kernel", "give one --kernel, without --modules")
    named = [*kernels, *(each.kernel for each in earlier.profiles)]
    examiners = natively(earlier.folder)
    is_own = not asked.trust
    lab = chosen_lab(asked.lab, earlier.profiles, named, is_own=is_own)
    kernel = platform.release()
    if lab == "vm":
        guests = VmLab(say=say)
        guests.check()
        _refuse_in_guests(asked, guests)
        kernel = next(iter(kernels), "")
        examiners = in_guests(guests, kernel)
    if asked.state is None:
        states = _states(asked, earlier.workload, limits, lab, kernel)
        journal = Journal.begin(earlier.folder, states)
        earlier.examine(journal, examiners, asked.outputs)
    else:
        state, profile, image = Number.parse(asked.state), asked.profile, asked.image
        if lab == "vm" and (asked.script or asked.xfstests):
            raise InputError(
                "--script and --xfstests need the native lab", "leave them out, or --lab native"
            )
        files = Files(image, asked.script, asked.xfstests)
        less = bool(asked.minimise)
        earlier.show(state, profile, files, examiners, is_minimised=less, is_json=asked.json)


def _resume(folder: Path, outputs: Outputs) -> None:
    """Continue an examination that was interrupted."""
    from fscost.crash.journal import Journal
    from fscost.lab.vm import VmLab

    earlier = Earlier(folder, trust=False)
    journal = Journal.resume(folder)
    asked = journal.asked
    if asked.lab == "vm":
        guests = VmLab(say=say)
        guests.check()
        examiners = in_guests(guests, asked.kernel)
    elif asked.kernel == platform.release():
        examiners = natively(folder)
    else:
        raise InputError(
            f"the examination in {folder} began on Linux {asked.kernel},"
            f" and this is {platform.release()}",
            "examine the run again: `fscost crash RUN`",
        )
    earlier.examine(journal, examiners, outputs)


def _states(asked: Asked, workload: str, limits: "Limits", lab: str, kernel: str) -> "AskedStates":
    """Return which states are examined, and where."""
    from fscost.crash.journal import Asked as AskedStates

    return AskedStates(
        workload,
        limits.device,
        limits.cuts,
        limits.states_per_cut,
        limits.seed,
        limits.again,
        asked.lose_disks,
        lab,
        kernel,
        asked.minimise is not False,
    )


def _check_known(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise InputError(f"{name} {value!r} is unknown", f"one of: {', '.join(known)}")
