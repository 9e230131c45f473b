"""`fscost run`: the workloads of a suite file, one run each, and their comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fscost import files
from fscost.cli import options, suite
from fscost.cli.diff import BEYOND, beyond
from fscost.cli.lines import say
from fscost.cli.measure import Judge, make
from fscost.cli.output.emit import Outputs
from fscost.cli.usage import some_path
from fscost.errors import InputError, did_you_mean
from fscost.request.model import AUTO, Place, Request
from fscost.request.request import absolute_images, to_spec
from fscost.results import MANIFEST, RunResults, load
from fscost.run import slug
from fscost.view.changes import Condition, compared

DEFAULT = Path("fscost.toml")
_Resume = Annotated[
    Path | None,
    typer.Option(
        parser=some_path,
        metavar="DIR",
        help="Resume the interrupted suite that was run with --out DIR.",
        rich_help_panel="Output",
    ),
]
_Brief = Annotated[
    bool,
    typer.Option("--brief", help="Print each workload's answer alone.", rich_help_panel="Output"),
]


def run(
    file: Annotated[
        Path, typer.Argument(parser=some_path, metavar="SUITE", help="A suite file.")
    ] = DEFAULT,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKLOAD", help="Run this workload of the suite; repeatable."),
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            "-r", "--repetitions", metavar="N", help="Exact number of repetitions of each."
        ),
    ] = None,
    lab: options.Lab = AUTO,
    kernel: options.Kernel = None,
    modules: options.Modules = None,
    on_cluster: options.OnCluster = None,
    recordings_to: options.RecordingsTo = None,
    out: options.Out = None,
    resume: _Resume = None,
    against: Annotated[
        Path | None,
        typer.Option(
            parser=some_path,
            metavar="DIR",
            help="Check the suite's fail_if against the suite that was run with --out DIR.",
            rich_help_panel="Output",
        ),
    ] = None,
    trust: options.Trust = False,
    wait: options.Wait = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    brief: _Brief = False,
) -> None:
    """Run the workloads of a suite file (fscost.toml), and compare them.

    Each workload becomes a run, as with `fscost compare`. A suite is TOML: version = 1,
    profiles = ["ext4", "xfs"], and a table for each workload, [workloads.NAME], with
    command = "…" or builtin = "sqlite"; `fscost schema suite` has all fields.

    fscost run nightly.toml --only database -r 2
    """
    if not trust:
        _refuse_others(file)
    found = suite.load(file)
    changes = _changes(repetitions, kernel, modules)
    chosen = {
        name: replace(each, **changes) for name, each in _chosen(found, file, only or ()).items()
    }
    _check(file, chosen)
    where = found.lab if lab == AUTO and found.lab else lab
    if resume is not None and out is not None:
        raise InputError("--resume and --out cannot be combined", "drop --out")
    place = Place(
        where,
        out,
        resume,
        trust=trust,
        dry_run=dry_run,
        wait=wait,
        on_cluster=on_cluster,
        recordings_to=recordings_to,
    )
    judge = _judge({name: suite.conditions(found, name) for name in chosen}, against, trust=trust)
    outputs = Outputs(json, is_brief=brief)
    outputs.check()
    raise typer.Exit(make(chosen, place, outputs, is_suite=True, judge=judge))


def _changes(
    repetitions: int | None, kernel: Sequence[str] | None, modules: Sequence[str] | None
) -> dict[str, Any]:
    """Return the fields of all requests that options override. Folders of modules belong to
    kernels, so --kernel replaces both of the suite's."""
    found: dict[str, Any] = {}
    if repetitions is not None:
        found |= {"min_repetitions": repetitions, "max_repetitions": repetitions}
    if kernel:
        found |= {"kernel": tuple(absolute_images(kernel)), "modules": ()}
    if modules:
        found["modules"] = tuple(str(Path(each).absolute()) for each in modules)
    return found


def _chosen(found: suite.Suite, file: Path, only: Sequence[str]) -> dict[str, Request]:
    """Return the requests of the chosen workloads."""
    requests = suite.requests(found, file)
    for name in only:
        if name not in found.workloads:
            raise InputError(
                f"{file} has no workload {name!r}",
                did_you_mean(name, found.workloads) or f"workloads: {', '.join(found.workloads)}",
            )
    return {
        name: each
        for name, each in requests.items()
        if not only or any(suite.is_of(name, each) for each in only)
    }


def _judge(
    conditions: Mapping[str, Sequence[Condition]], against: Path | None, *, trust: bool
) -> Judge:
    """Return the function that checks the conditions of finished runs, which loads the earlier runs
    now: a missing one is an error before the first run."""
    before = {} if against is None else _earlier(against, conditions, trust=trust)
    if against is None and any(conditions.values()):
        say("fail_if is checked with --against DIR, the folder of an earlier --out")

    def judge(done: Mapping[str, RunResults]) -> int:
        is_beyond = [
            beyond(compared(before[name], each), conditions[name], f"{name}: ")
            for name, each in done.items()
            if name in before
        ]
        return BEYOND if any(is_beyond) else 0

    return judge


def _earlier(
    folder: Path, conditions: Mapping[str, Sequence[Condition]], *, trust: bool
) -> dict[str, RunResults]:
    """Load the earlier run of each workload with conditions. A suite of one run has no folder for
    each."""
    return {
        name: load(folder if (folder / MANIFEST).exists() else folder / slug(name), trust=trust)
        for name, each in conditions.items()
        if each
    }


def _refuse_others(file: Path) -> None:
    """Refuse a suite that another user could have written: its commands run as the caller."""
    if file.exists() and (found := files.replaceable(file.absolute(), files.trusted_owners())):
        part, why = found
        raise InputError(
            f"{file} is not safe to run: {part} {why}",
            "look at the commands in the file; if they are what you expect, add --trust",
        )


def _check(file: Path, requests: dict[str, Request]) -> None:
    """Validate all requests before the first run, which may take an hour."""
    for name, request in requests.items():
        try:
            to_spec(request, Path(), resume=False, command_line=())
        except InputError as error:
            raise InputError(f"{file}: workloads.{name}: {error.what}", error.remedy) from None
