"""Runs as `fscost compare` makes them: one, or several that are then compared."""

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from fscost import files, run
from fscost.cli.differing import show
from fscost.cli.examine import explored
from fscost.cli.lines import say, wrapped
from fscost.cli.output.emit import Outputs
from fscost.cli.progress import progress
from fscost.cli.promising import beside
from fscost.errors import InputError
from fscost.request.hooks import around
from fscost.request.labs import lock_of
from fscost.request.model import Place, Request
from fscost.request.prepare import Prepared, prepared
from fscost.request.request import most_cells
from fscost.results import MANIFEST, METRICS, RunResults, load
from fscost.results.worn import YEARS
from fscost.run import RunOutcome
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.per import parse_per
from fscost.view.relation import relation, within
from fscost.view.run import answer

Held = AbstractContextManager[None]
"""Lock that keeps other runs from starting."""


Judge = Callable[[Mapping[str, RunResults]], int]
"""Function that returns the exit status of finished runs, by name."""


def make(
    found: Mapping[str, Request],
    place: Place,
    outputs: Outputs,
    *,
    is_suite: bool = False,
    judge: Judge = lambda _: 0,
) -> int:
    """Make a run and print its tables, or make several runs and compare them: with each other, or,
    in a suite of different workloads, the profiles within each. Return the worst exit status."""
    _check_cells(found, place.max_cells)
    if len(found) > 1:
        with _alone(place):
            done, worst = _several(found, place, outputs, is_suite=is_suite)
        if len(done) > 1:
            _compare(found, done, outputs, is_suite=is_suite)
        return worst or judge(done)
    [(name, only)] = found.items()
    outcome = _measure(only, place, _alone(place))
    if outcome is None:
        return 0
    if outcome.results.manifest.cells:
        outputs.emit(outcome.results)
    return outcome.exit_code or judge({name: outcome.results})


def _check_cells(found: Mapping[str, Request], most: int | None) -> None:
    """Refuse runs that could take more than `most` cells, and say how many several runs take."""
    cells = sum(map(most_cells, found.values()))
    if most is not None and cells > most:
        least = sum(most_cells(each) // each.max_repetitions for each in found.values())
        raise InputError(
            f"this could take {cells:,} cells, more than --max-cells {most:,}: {least:,} in each"
            " repetition",
            "limit the repetitions with -r, give fewer choices in braces, or choose among them"
            " with --design screening",
        )
    if len(found) > 1:
        say(f"{len(found)} runs, at most {cells:,} cells")


def _several(
    found: Mapping[str, Request], place: Place, outputs: Outputs, *, is_suite: bool
) -> tuple[dict[str, RunResults], int]:
    """Make the runs, and print each one's tables, or its answer. Return those with finished cells,
    and the worst exit status."""
    if outputs.csv is not None or outputs.markdown is not None:
        raise InputError(
            "--csv and --markdown write one run, not several",
            "drop them, and use `fscost show RUN --csv FILE` afterwards",
        )
    if place.resume is not None:
        _check_folder(place.resume, trust=place.trust)
    done: dict[str, RunResults] = {}
    worst = 0
    folders = run.folders(found)
    for name, asked in found.items():
        if place.dry_run:
            print(plain(f"# run {name}"))
        own = _place_of(folders[name], place)
        outcome = _finished(asked, own)
        if outcome is not None:
            say(f"{name}: finished already")
        else:
            outcome = _measure(asked, own, nullcontext())
        if outcome is None:
            continue
        worst = max(worst, outcome.exit_code)
        if outcome.results.manifest.done:
            done[name] = outcome.results
            if is_suite and not outputs.json and not outputs.is_brief:
                outputs.emit(outcome.results)
                print()
            elif not outputs.json:
                print(wrapped(plain(f"{name}: {answer(outcome.results)}")))
                there = shlex.quote(str(outcome.results.folder))
                told = "" if outputs.is_brief else "Why, and its tables: fscost show "
                print(plain(f"  {told}{there}"))
        if outcome.interrupted:
            if (folder := place.out or place.resume) is not None:
                again = f"--resume {shlex.quote(str(folder))}"
                say(f"resume all runs with the same command and {again} in place of --out")
            break
    return done, worst


def _compare(
    found: Mapping[str, Request],
    done: Mapping[str, RunResults],
    outputs: Outputs,
    *,
    is_suite: bool,
) -> None:
    first = next(iter(found.values()))
    is_within_a_run = METRICS[first.metric].is_time or first.metric == YEARS
    metric = WRITTEN if is_within_a_run else first.metric
    pers = {name: parse_per(asked.per) if asked.per else None for name, asked in found.items()}
    if is_suite:
        shown = within(done, metric, pers)
    else:
        # Bytes per operation are not comparable if the operations differ.
        is_one = len({asked.per for asked in found.values()}) == 1
        shown = relation(done, metric, next(iter(pers.values())) if is_one else None)
    show(shown, metric, is_json=outputs.json)


def _check_folder(folder: Path, *, trust: bool) -> None:
    """Refuse a folder of runs that other users control, or that does not exist."""
    try:
        with files.own_folder(folder, trust=trust):
            pass
    except OSError as error:
        raise InputError(
            f"{folder} holds no runs: {error.strerror}", "name the folder given to --out"
        ) from error


def _place_of(name: str, place: Place) -> Place:
    """Return the place of one run among several: the folder of this name in that of --out or
    --resume. A run that has begun there is resumed."""
    if place.resume is None:
        return replace(place, out=place.out and place.out / name)
    folder = place.resume / name
    if (folder / MANIFEST).exists():
        return replace(place, resume=folder)
    return replace(place, resume=None, out=folder)


def _finished(asked: Request, place: Place) -> RunOutcome | None:
    """Return the outcome of a run that finished earlier with the same options."""
    if place.resume is None:
        return None
    results = load(place.resume, trust=place.trust)
    is_same = results.manifest.request == asked.to_json()
    return RunOutcome(results) if is_same and results.manifest.state == "finished" else None


def alone(lab: str, *, wait: bool) -> Held:
    """Return a context that keeps other runs on this machine from starting. If one is in progress,
    refuse, or wait for its end."""
    return run.exclusive(lock_of(lab), _say_waits if wait else None)


def _alone(place: Place) -> Held:
    # The machines of a cluster are held by its workers, this one among them or not.
    is_elsewhere = place.dry_run or place.on_cluster is not None
    return nullcontext() if is_elsewhere else alone(place.lab, wait=place.wait)


def _say_waits(holder: run.Holder) -> None:
    say(f"waiting for another fscost run ({holder})")


def _measure(asked: Request, place: Place, held: Held) -> RunOutcome | None:
    """Make one run, within `held`. Return None if its commands were only printed (--dry-run)."""
    found = prepared(asked, place, say, sys.argv)
    if place.dry_run:
        for title, own in (("setup", asked.setup), ("cleanup", asked.cleanup)):
            if own:
                print(plain("\n".join([f"# {title}, once on this machine", *own])))
        print_commands(found)
        return None
    cuts = beside(found, asked) if place.crash else None
    with held, around(asked.setup, asked.cleanup, say):
        outcome = execute(found, show_output=place.show_output)
        if cuts is not None and not outcome.interrupted:
            _cut_power(cuts)
        if outcome.results.manifest.done:
            run.point_latest(found.spec.folder)
        say_interrupted(outcome, "fscost compare")
    return outcome


def _cut_power(found: Prepared) -> None:
    say("cutting the power of each profile")
    outcome = execute(found)
    if outcome.interrupted:
        say("interrupted: the run is whole, but has no verdicts after power cuts")
    else:
        explored(outcome.results, found.executor.site)


def print_commands(found: Prepared) -> None:
    """Print every command that a run would execute."""
    for profile, commands in run.commands(found.spec, found.executor.site).items():
        print(plain("\n".join([f"# {profile}", *commands])))


def execute(found: Prepared, *, show_output: bool = False) -> RunOutcome:
    """Execute a run and show its progress. The caller holds the lock."""
    listener = progress(show_output=show_output)
    try:
        return run.execute(found.spec, found.executor, listener, lock=None)
    finally:
        listener.close()


def say_interrupted(outcome: RunOutcome, command: str) -> None:
    """Say how `command` resumes the run, if it was interrupted."""
    if outcome.interrupted:
        resume = f"resume with: {command} --resume {shlex.quote(str(outcome.results.folder))}"
        nothing = "no cell was finished, so nothing is kept"
        say(f"interrupted; {resume if outcome.results.manifest.cells else nothing}")
