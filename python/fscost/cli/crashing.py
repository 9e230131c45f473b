"""`fscost crash`, once its command line is parsed."""

import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from fscost import profile
from fscost.cli.controls import controls
from fscost.cli.crash import Asked
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
from fscost.crash.explore import Limits
from fscost.crash.journal import Asked as AskedStates
from fscost.crash.journal import Journal
from fscost.crash.workloads import COMMAND, FILES
from fscost.errors import InputError
from fscost.lab.vm import VmLab
from fscost.request.model import Place
from fscost.request.prepare import prepared

_DEFAULT = ("ext4", "ext4 -o nobarrier", "ext4 -O ^has_journal", "xfs", "btrfs")


def crashed(asked: Asked) -> None:
    """Record or find the disks that the options name, cut their power, and print what was found."""
    outputs = Outputs(asked.json, is_brief=asked.brief)
    outputs.check()
    if asked.resume is not None:
        asked.check_resumed()
        with alone("native", wait=asked.wait):
            _resume(asked.resume, outputs, trust=asked.trust)
        return
    limits = asked.check()
    if asked.controls:
        asked.check_controls()
        with alone("native", wait=asked.wait):
            place = Place("native", asked.out, wait=asked.wait)
            raise typer.Exit(controls(place, limits, asked.rounds, is_json=asked.json))
    if asked.run is not None:
        with alone("native", wait=asked.wait):
            _again(asked, Earlier(asked.run, trust=asked.trust), limits, outputs)
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
        examine(outcome.results, journal, examiners_of(site, folder), outputs)
    raise typer.Exit(outcome.exit_code)


def _refuse_in_guests(asked: Asked, lab: VmLab) -> None:
    """Refuse a command whose calls have no place in the recording."""
    if asked.command and lab.guests.accelerated().is_emulated:
        raise InputError(
            "guests are emulated here: their clock is not that of the recording, so that the fsync"
            " calls of a command have no place in it",
            "name a --workload, or measure with --lab native",
        )


def _again(asked: Asked, earlier: Earlier, limits: Limits, outputs: Outputs) -> None:
    """Examine a run that was made earlier."""
    kernels = asked.kernel or ()
    if len(kernels) > 1 or asked.modules:
        raise InputError("RUN is examined by one kernel", "give one --kernel, without --modules")
    named = [*kernels, *(each.kernel for each in earlier.profiles)]
    examiners = natively(earlier.folder)
    lab = _lab_of(asked, earlier, named)
    if lab == "vm" and asked.state is not None and (asked.script or asked.xfstests):
        native = "--lab native" if earlier.is_made_here else "--lab native --trust"
        raise InputError(
            "--script and --xfstests need the native lab",
            f"leave them out, or, if you trust the run's disks, {native}",
        )
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
        earlier.examine(journal, examiners, outputs)
    else:
        state, profile, image = Number.parse(asked.state), asked.profile, asked.image
        files = Files(image, asked.script, asked.xfstests)
        less = bool(asked.minimise)
        earlier.show(state, profile, files, examiners, is_minimised=less, is_json=asked.json)


def _lab_of(asked: Asked, earlier: Earlier, kernels: Sequence[str]) -> str:
    """Return where a run is examined. Disks that this machine did not record are for guests, unless
    the user insists: a mount of them could attack this kernel."""
    is_own = asked.lab != "vm" and not asked.trust and earlier.is_made_here
    if asked.lab == "native" and not asked.trust and not is_own:
        raise InputError(
            _foreign(earlier), "leave out --lab native; or, if you trust its disks, add --trust"
        )
    lab = chosen_lab(asked.lab, earlier.profiles, kernels, is_own=is_own)
    could_be_here = chosen_lab(asked.lab, earlier.profiles, kernels) == "native"
    if lab == "vm" and could_be_here and not asked.trust:
        say(
            f"{_foreign(earlier)}: guests examine it; --lab native --trust mounts it on this kernel"
        )
    return lab


def _foreign(earlier: Earlier) -> str:
    return f"{earlier.folder}: no note says that this user recorded it natively on this machine"


def _resume(folder: Path, outputs: Outputs, *, trust: bool) -> None:
    """Continue an examination that was interrupted."""

    earlier = Earlier(folder, trust=trust)
    journal = Journal.resume(folder)
    asked = journal.asked
    if asked.lab == "vm":
        guests = VmLab(say=say)
        guests.check()
        examiners = in_guests(guests, asked.kernel)
    elif not trust and not earlier.is_made_here:
        raise InputError(
            _foreign(earlier),
            "`fscost crash RUN` examines it in guests; or, if you trust its disks, add --trust",
        )
    elif asked.kernel == platform.release():
        examiners = natively(folder)
    else:
        raise InputError(
            f"the examination in {folder} began on Linux {asked.kernel},"
            f" and this is {platform.release()}",
            "examine the run again: `fscost crash RUN`",
        )
    earlier.examine(journal, examiners, outputs)


def _states(asked: Asked, workload: str, limits: Limits, lab: str, kernel: str) -> AskedStates:
    """Return which states are examined, and where."""

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
        # Of a stranger's run, nothing is formatted and measured again unless that was asked for.
        not (asked.run and asked.trust) if asked.minimise is None else asked.minimise,
    )
