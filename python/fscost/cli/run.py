"""`fscost run`: the workloads of a suite file, one run each, and their comparison. Its help imports
nothing but its options."""

from pathlib import Path
from typing import Annotated

import typer

from fscost.cli import options
from fscost.cli.usage import some_path
from fscost.request.model import AUTO, Place

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
    from fscost.cli.output.emit import Outputs
    from fscost.cli.running import changes_of, ran

    place = Place(
        lab,
        out,
        resume,
        trust=trust,
        dry_run=dry_run,
        wait=wait,
        on_cluster=on_cluster,
        recordings_to=recordings_to,
    )
    changes = changes_of(repetitions, kernel, modules)
    outputs = Outputs(json, is_brief=brief)
    raise typer.Exit(ran(file, only or (), changes, place, against, outputs))
