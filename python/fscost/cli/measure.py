"""Runs as `fscost compare` makes them: one, or several that are then compared."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace

from fscost import run
from fscost.cli.diff import show
from fscost.cli.lines import say, wrapped
from fscost.cli.output.emit import Outputs
from fscost.cli.progress import progress
from fscost.errors import InputError
from fscost.request import Place, Prepared, Request, around, prepared
from fscost.results import METRICS, RunResults
from fscost.run import RunOutcome
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.per import parse_per
from fscost.view.relation import relation
from fscost.view.run import answer


def make(found: Mapping[str, Request], place: Place, outputs: Outputs) -> int:
    """Make a run and print its tables, or make several runs and compare them. Return the worst exit
    status."""
    if len(found) > 1:
        return _several(found, place, outputs)
    [only] = found.values()
    outcome = _measure(only, place)
    if outcome is None:
        return 0
    if outcome.results.manifest.cells:
        outputs.emit(outcome.results)
    return outcome.exit_code


def _several(found: Mapping[str, Request], place: Place, outputs: Outputs) -> int:
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
        outcome = _measure(asked, replace(place, out=out))
        if outcome is None:
            continue
        worst = max(worst, outcome.exit_code)
        if outcome.results.manifest.done:
            done[name] = outcome.results
            if not outputs.json:
                print(wrapped(plain(f"{name}: {answer(outcome.results)}")))
                print(plain(f"  {outcome.results.folder}"))
        if outcome.interrupted:
            break
    if len(done) > 1:
        first = next(iter(found.values()))
        # Bytes per operation are not comparable if the operations differ.
        is_one = len({asked.per for asked in found.values()}) == 1
        per = parse_per(first.per) if first.per is not None and is_one else None
        metric = first.metric if METRICS[first.metric].unit != "s" else WRITTEN
        show(relation(done, metric, per), metric, is_json=outputs.json)
    return worst


def _measure(asked: Request, place: Place) -> RunOutcome | None:
    """Make one run. Return None if its commands were only printed (--dry-run)."""
    found = prepared(asked, place, say, sys.argv)
    if place.dry_run:
        for title, own in (("setup", asked.setup), ("cleanup", asked.cleanup)):
            if own:
                print(plain("\n".join([f"# {title}, once on this machine", *own])))
        print_commands(found)
        return None
    with around(asked.setup, asked.cleanup, say):
        outcome = execute(found)
        if outcome.results.manifest.done:
            run.point_latest(found.spec.folder)
        say_interrupted(outcome, "fscost compare")
    return outcome


def print_commands(found: Prepared) -> None:
    """Print every command that a run would execute."""
    for profile, commands in run.commands(found.spec, found.lab).items():
        print(plain("\n".join([f"# {profile}", *commands])))


def execute(found: Prepared) -> RunOutcome:
    """Execute a run and show its progress."""
    listener = progress()
    try:
        return run.execute(found.spec, found.lab, listener, found.lock)
    finally:
        listener.close()


def say_interrupted(outcome: RunOutcome, command: str) -> None:
    """Say how `command` resumes the run, if it was interrupted."""
    if outcome.interrupted:
        resume = f"resume with: {command} --resume {shlex.quote(str(outcome.results.folder))}"
        nothing = "no cell was finished, so nothing is kept"
        say(f"interrupted; {resume if outcome.results.manifest.cells else nothing}")
