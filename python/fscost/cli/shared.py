"""Arguments and options that several commands declare."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fscost.cli.usage import run_path, some_path

Repeated = list[str] | None
"""Values of a repeatable option."""
Run = Annotated[
    Path,
    typer.Argument(parser=run_path, metavar="RUN", help="The folder that `fscost compare` made."),
]
Runs = Annotated[
    Path, typer.Argument(parser=some_path, metavar="DIR", help="Folder that holds runs.")
]
DEFAULT_RUNS = Path("fscost-runs")
TrustRun = Annotated[
    bool,
    typer.Option("--trust", help="Use a run's folder that another user owns or can write to."),
]
TrustRuns = Annotated[
    bool, typer.Option("--trust", help="Read runs that another user owns or can write to.")
]
ModelledDevice = Annotated[
    str | None,
    typer.Option(
        "--ssd",
        metavar="DEVICE",
        help="Show the wear of this device. (default: the device of the run's --ssd)",
        show_default=False,
    ),
]
ModelledArray = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="LEVEL,members=N,…",
        help="Model each recorded disk as an md array of --ssd devices (docs/wear.md).",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]

FormatName = Literal[
    "blkparse",
    "blktrace",
    "msr",
    "fio",
    "systor17",
    "alibaba",
    "tencent",
    "spc",
    "fiu",
    "disksim",
    "mqsim",
    "dm-log-writes",
]
"""The formats of docs/traces.md."""

# Options of the commands that replay recordings on a model.
Seed = Annotated[int, typer.Option(min=0, help="Seed for all random choices of the model.")]
OnlyProfiles = Annotated[
    Repeated, typer.Option(metavar="NAME", help="Only this profile of a run; repeatable.")
]
TrustRecordings = Annotated[
    bool, typer.Option("--trust", help="Read a run folder that another user owns or can write to.")
]
JsonTables = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of tables.")
]
CsvTables = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write the rows as CSV; - for standard output.")
]
MarkdownTables = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the tables as Markdown; - for standard output."),
]
