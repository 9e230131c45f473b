"""`fscost study`: published experiments, reproduced and judged. Its help imports nothing but its
options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli import shared
from fscost.cli.declare import option, with_fields
from fscost.cli.help import Command
from fscost.cli.usage import group, some_path
from fscost.request.model import AUTO

app = group("Repeat published experiments, compare the values, and give a verdict for each claim.")

Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, in place of the tables.")
]
ByDisk = Annotated[
    bool,
    typer.Option(
        "--by-disk", help="Add a table for each disk; with --json, add rows for each disk."
    ),
]
Brief = Annotated[
    bool, typer.Option("--brief", help="Print the number of claims by verdict alone.")
]
Markdown = Annotated[
    str | None, typer.Option(metavar="FILE", help="The report as Markdown; - for standard output.")
]


@app.command("list", cls=Command)
def list_(json: shared.Json = False) -> None:
    """List the studies, one line each, and their scales."""
    from fscost.cli.studying import print_studies

    print_studies(is_json=json)


@dataclass(frozen=True)
class RunOptions:
    """Options of `fscost study run`."""

    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a study; `fscost study list` lists all.")
    ]
    scale: str = option(
        default="small",
        metavar="small|medium|full",
        help="small takes minutes; medium decides most claims; full is as published, as far as one"
        " machine allows.",
    )
    set: shared.Repeated = option(
        "--set", metavar="KEY=VALUE", help="An option of its workload; repeatable."
    )
    source: Path | None = option(
        parser=some_path,
        metavar="PATH",
        help="The repository or tarball that its workload uses. (default: as the scale says)",
    )
    disk: shared.Repeated = option(
        metavar="NAME=MODEL[,size=SIZE]",
        help="Device model or size of a disk, in place of the scale's; repeatable.",
    )
    profile: shared.Repeated = option(
        metavar="NAME",
        help="A profile to run, by its short name in the study; repeatable. Claims that need others"
        " stay open, unless those cannot change them. (default: all)",
    )
    seed: int = option(default=0, help="Seed for all random choices.")
    min_repetitions: int | None = option(help="Minimum repetitions. (default: as the scale says)")
    max_repetitions: int | None = option(help="Maximum repetitions. (default: as the scale says)")
    max_minutes: float | None = option(
        help="Time limit of the run; two repetitions are always completed."
    )
    out: Path | None = option(
        parser=some_path,
        metavar="DIR",
        help="Folder for the results. (default: fscost-runs/TIME-study-NAME)",
    )
    resume: Path | None = option(parser=some_path, metavar="DIR", help="Resume an interrupted run.")
    trust: shared.TrustRun = False
    wait: bool = option(
        "--wait",
        default=False,
        help="Wait while another run of fscost is in progress on this machine.",
    )
    dry_run: bool = option("--dry-run", default=False, help="Print every command, run none.")
    json: Json = False
    markdown: Markdown = None
    by_disk: ByDisk = False
    brief: Brief = False
    lab: str = option(
        default=AUTO,
        metavar="native|vm",
        help="Run on this kernel as root, or in guests. (default: native if it can run here)",
        show_default=False,
    )
    kernel: shared.Repeated = option(
        metavar="SERIES|host|VMLINUZ",
        help="Kernel of guests: Debian's (such as 6.12), this host's, or an image; repeat to judge each.",
    )
    modules: shared.Repeated = option(
        metavar="DIR",
        help="Module folder (/lib/modules/VERSION) of each --kernel image, in the same order.",
    )


@app.command("run", cls=Command)
@with_fields
def run_(context: typer.Context, options: RunOptions) -> None:
    """Run a published experiment on this machine and judge its claims by what was measured."""
    from fscost.cli.studying import ran

    ran(context, options)


@app.command(cls=Command)
def show(
    folder: Annotated[
        Path,
        typer.Argument(
            parser=some_path, metavar="RUN", help="The folder that `fscost study run` made."
        ),
    ],
    json: Json = False,
    markdown: Markdown = None,
    by_disk: ByDisk = False,
    brief: Brief = False,
    trust: shared.TrustRun = False,
) -> None:
    """Judge a finished run again by the current rules, and print the report."""
    from fscost.cli.output.emit import Outputs
    from fscost.cli.studying import shown
    from fscost.view.run import Choice

    choice = Choice(is_by_disk=by_disk)
    shown(folder, Outputs(json, None, markdown, choice, is_brief=brief), trust=trust)


@app.command(cls=Command)
def page(
    folders: Annotated[
        list[Path],
        typer.Argument(
            parser=some_path, metavar="RUN…", help="Folders that `fscost study run` made."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", parser=some_path, metavar="FILE.md", help="Write the page to this file."
        ),
    ],
    answers: Annotated[
        Path | None,
        typer.Option(
            parser=some_path,
            metavar="FILE.toml",
            help="Paragraphs in prose, such as noatime-raid = 'TEXT', to begin each post with.",
        ),
    ] = None,
    trust: shared.TrustRun = False,
) -> None:
    """Write one Markdown page about runs of several studies: verdicts, numbers and pictures."""
    from fscost.cli.studying import write_page

    write_page(folders, out, answers, trust=trust)
