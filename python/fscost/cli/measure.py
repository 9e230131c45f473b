"""Runs as `fscost compare` makes them: one, or several that are then related."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fscost import run
from fscost.cli import hooks
from fscost.cli.diff import show
from fscost.cli.labs import choose_lab
from fscost.cli.output.emit import Outputs
from fscost.cli.progress import progress
from fscost.cli.real_devices import real_device, real_disks, refuse_unneeded, with_real_disks
from fscost.cli.request import Request, to_spec
from fscost.errors import InputError
from fscost.lab.base import Lab
from fscost.results import METRICS, RunResults
from fscost.run import RunOutcome, RunSpec
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.per import parse_per
from fscost.view.relation import relation
from fscost.view.run import answer


@dataclass(frozen=True)
class Place:
    """Where runs take place, and what may be done there."""

    lab: str
    out: Path | None
    resume: Path | None
    trust: bool
    erase_device: tuple[str, ...]
    force: bool
    dry_run: bool


def several(found: Mapping[str, Request], place: Place, outputs: Outputs) -> int:
    """One run after the other, then all beside each other; returns the worst exit status."""
    if outputs.csv is not None or outputs.markdown is not None:
        raise InputError(
            "--csv and --markdown write one run, not several",
            "drop them, and use `fscost show RUN --csv FILE` afterwards",
        )
    done: dict[str, RunResults] = {}
    worst = 0
    for name, asked in found.items():
        out = place.out and place.out / run.slug(name)
        if place.dry_run:
            print(plain(f"# run {name}"))
        outcome = measure(asked, replace(place, out=out))
        if outcome is None:
            continue
        worst = max(worst, outcome.exit_code)
        if outcome.results.manifest.done:
            done[name] = outcome.results
            if not outputs.json:
                print(plain(f"{name}: {answer(outcome.results)}\n  {outcome.results.folder}"))
        if outcome.interrupted:
            break
    if len(done) > 1:
        first = next(iter(found.values()))
        per = None if first.per is None else parse_per(first.per)
        metric = first.metric if METRICS[first.metric].unit != "s" else WRITTEN
        show(relation(done, metric, per), metric, is_json=outputs.json)
    return worst


def measure(asked: Request, place: Place) -> RunOutcome | None:
    """One run; None where its commands were only printed."""
    claimed = real_device(asked.device, place.erase_device, place.force)
    spec = to_spec(
        asked,
        place.resume or place.out or Path(),
        resume=place.resume is not None,
        trust=place.trust,
        command_line=sys.argv,
        device_bytes=None if claimed is None else claimed.size_bytes,
    )
    disks = real_disks(spec.profiles, place.erase_device, place.force)
    refuse_unneeded([claimed, *disks.values()], place.erase_device, place.force)
    spec = with_real_disks(spec, disks, is_sized=asked.size is not None)
    if place.resume is None and place.out is None:
        spec = replace(spec, folder=run.default_folder(spec.name or spec.workload.name))
    for one, other in run.same_profiles(spec.profiles):
        same = f"'{one}' and '{other}' are the same profile"
        print(plain(f"{same}: any difference between them is noise"), file=sys.stderr)
    chosen, lock = choose_lab(place.lab, spec, claimed, asked.modules, disks)
    if place.dry_run:
        for title, own in (("setup", asked.setup), ("cleanup", asked.cleanup)):
            if own:
                print(plain("\n".join([f"# {title}, once on this machine", *own])))
        for profile, commands in run.commands(spec, chosen).items():
            print(plain("\n".join([f"# {profile}", *commands])))
        return None
    with hooks.around(asked.setup, asked.cleanup):
        return _executed(spec, chosen, lock)


def _executed(spec: RunSpec, lab: Lab, lock: str) -> RunOutcome:
    listener = progress()
    try:
        outcome = run.execute(spec, lab, listener, lock)
    finally:
        listener.close()
    kept = bool(outcome.results.manifest.cells)
    if kept:
        run.point_latest(spec.folder)
    if outcome.interrupted:
        resume = f"resume with: fscost compare --resume {shlex.quote(str(spec.folder))}"
        what = resume if kept else "no cell was finished, so nothing is kept"
        print(plain(f"interrupted; {what}"), file=sys.stderr)
    return outcome
