"""Options of `fscost compare`, grouped by the panels of its help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.completion import metrics, profiles, workloads
from fscost.cli.usage import run_path, some_path
from fscost.request import AUTO, DEFAULT_PROFILES, DEFAULT_WORKLOAD, KERNELS, Request

_WHAT = "Profiles and workload"
_HOW = "Measurement"
_ENOUGH = "Repetitions"
_WHERE = "Output"
_DISK = "The disk"

Lab = Annotated[
    str,
    typer.Option(
        metavar="native|vm",
        help="Run on this kernel as root, or in guests. (default: native if it can run here)",
        show_default=False,
        rich_help_panel=_HOW,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        parser=some_path,
        metavar="DIR",
        help="Folder for the results. (default: fscost-runs/TIME-NAME)",
        rich_help_panel=_WHERE,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Use a run's folder that another user owns or can write to.",
        rich_help_panel=_WHERE,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print every command, run none.", rich_help_panel=_WHERE),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="One JSON object on standard output, in place of the table.",
        rich_help_panel=_WHERE,
    ),
]


@dataclass(frozen=True)
class Options:
    """Options of `fscost compare`. A field of `Request` or `Place` has the same name here."""

    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND…]",
            help=(
                "The command to measure. It starts in the new, empty file system; {here} is the"
                " current folder."
            ),
        ),
    ] = None
    on: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=profiles,
            metavar="PROFILE",
            help=(
                "Profile to measure: type, mkfs flags, -o with mount options; repeatable. (default:"
                f" {', '.join(DEFAULT_PROFILES)})"
            ),
            rich_help_panel=_WHAT,
        ),
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            autocompletion=profiles,
            metavar="PROFILE",
            help="Profile that ratios are computed against. (default: the first)",
            rich_help_panel=_WHAT,
        ),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            autocompletion=workloads,
            metavar="NAME",
            help=f"A built-in workload. (default: {DEFAULT_WORKLOAD})",
            rich_help_panel=_WHAT,
        ),
    ] = None
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="NAME=COMMAND",
            help="A named shell command; repeat to compare several.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    lists: Annotated[
        list[str] | None,
        typer.Option(
            "-L",
            "--parameter-list",
            metavar="NAME VALUE,…",
            help="Make one run per value, substituted for {NAME}; repeat for all combinations.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--name",
            metavar="NAME",
            help="Name of the run, in its title and folder.",
            rich_help_panel=_WHERE,
        ),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Environment variable of the command; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    ignore_failure: Annotated[
        bool,
        typer.Option(
            "--ignore-failure",
            help="Measure the command even if it exits with an error.",
            rich_help_panel=_HOW,
        ),
    ] = False
    per: Annotated[
        str | None,
        typer.Option(
            metavar="N:WORD",
            help=(
                "Number and name of the command's operations (500:tx), to show bytes per operation."
            ),
            rich_help_panel=_WHAT,
        ),
    ] = None
    fill: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Fill the disk before the workload, for example 90%.",
            rich_help_panel=_DISK,
        ),
    ] = None
    age: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Rounds of creating and deleting files before the workload.",
            rich_help_panel=_DISK,
        ),
    ] = None
    setup: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this shell command on this machine, once before the run; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    prepare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help=(
                "Run this shell command, unmeasured, before the measured one in each cell;"
                " repeatable."
            ),
            rich_help_panel=_WHAT,
        ),
    ] = None
    conclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help=(
                "Run this shell command, unmeasured, after the measured one in each cell;"
                " repeatable."
            ),
            rich_help_panel=_WHAT,
        ),
    ] = None
    cleanup: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this shell command on this machine, once after the run; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    aged: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            help="Set the times of prepared files back by DAYS, because relatime depends on them.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    scale: Annotated[
        float | None,
        typer.Option(
            help="Size factor of a built-in workload; 1 is its default size.", rich_help_panel=_WHAT
        ),
    ] = None
    source: Annotated[
        Path | None,
        typer.Option(
            parser=some_path,
            metavar="PATH",
            help="The repository or tarball that a workload uses.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="An option of the workload; repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(help="Seed for all random choices.", rich_help_panel=_WHAT)
    ] = Request.seed
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="sync|remount|none",
            help=(
                "How each phase ends; after 'none', late writes count in later phases. (default:"
                " as the workload says)"
            ),
            rich_help_panel=_HOW,
        ),
    ] = None
    drop_caches: Annotated[
        bool,
        typer.Option(
            "--drop-caches", help="Empty the page cache before each phase.", rich_help_panel=_HOW
        ),
    ] = Request.drop_caches
    probe: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            help="Make and remove a directory at this interval, and measure how long that takes.",
            rich_help_panel=_HOW,
        ),
    ] = None
    repetitions: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--repetitions",
            metavar="N",
            help="Exact number of repetitions.",
            rich_help_panel=_ENOUGH,
        ),
    ] = None
    min_repetitions: Annotated[
        int, typer.Option(help="Minimum repetitions.", rich_help_panel=_ENOUGH)
    ] = Request.min_repetitions
    max_repetitions: Annotated[
        int, typer.Option(help="Maximum repetitions.", rich_help_panel=_ENOUGH)
    ] = Request.max_repetitions
    max_minutes: Annotated[
        float,
        typer.Option(
            help="Time limit of the run; the first repetition is always completed.",
            rich_help_panel=_ENOUGH,
        ),
    ] = Request.max_minutes
    metric: Annotated[
        str,
        typer.Option(
            autocompletion=metrics,
            help="Metric whose 95 % interval decides when the run ends.",
            rich_help_panel=_ENOUGH,
        ),
    ] = Request.metric
    precision: Annotated[
        float,
        typer.Option(
            help="End when the interval is this narrow: 0.02 is ± 2 %.", rich_help_panel=_ENOUGH
        ),
    ] = Request.precision
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help=(
                "Time limit for each cell, for example 90s or 2h. (default: 30 minutes for each"
                " step, or what the workload says)"
            ),
            rich_help_panel=_HOW,
        ),
    ] = None
    writable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Let the command write to this host folder; repeatable. Native lab only.",
            rich_help_panel=_HOW,
        ),
    ] = None
    network: Annotated[
        bool,
        typer.Option(
            "--network",
            help="Give the command this machine's network. Native lab only.",
            rich_help_panel=_HOW,
        ),
    ] = False
    ssd: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|FILE.toml",
            help="Add NAND bytes and the lifetime of this device (see `fscost devices`).",
            rich_help_panel=_HOW,
        ),
    ] = None
    lab: Lab = AUTO
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION|VMLINUZ",
            help=f"Kernel of guests: {', '.join(KERNELS)}, or an image; repeat to compare.",
            rich_help_panel=_HOW,
        ),
    ] = None
    modules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Module folder (/lib/modules/VERSION) of each --kernel image, in the same order.",
            rich_help_panel=_HOW,
        ),
    ] = None
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Size of the disk, for example 4G. (default: 4G, or what the workload needs)",
            rich_help_panel=_DISK,
        ),
    ] = None
    disk: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL[,size=SIZE]",
            help=(
                "Device model whose timing the disk gets, or /dev/X to ERASE and record;"
                " repeatable."
            ),
            rich_help_panel=_DISK,
        ),
    ] = None
    logical_block_size: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", help="Logical sector size. (default: 512)", rich_help_panel=_DISK
        ),
    ] = None
    physical_block_size: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", help="Physical sector size. (default: 4096)", rich_help_panel=_DISK
        ),
    ] = None
    device: Annotated[
        str | None,
        typer.Option(
            metavar="/dev/X",
            help="Use this real block device instead of recorded disks, and ERASE it.",
            rich_help_panel=_DISK,
        ),
    ] = None
    erase_device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="/dev/X",
            help=(
                "Confirm that the device of --device or --disk may be erased: repeat its path;"
                " repeatable."
            ),
            rich_help_panel=_DISK,
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Erase the device even if it holds something.", rich_help_panel=_DISK
        ),
    ] = False
    keep: Annotated[
        str,
        typer.Option(
            metavar="all|one|none",
            help="Recordings kept: all, one of each profile, none.",
            rich_help_panel=_WHERE,
        ),
    ] = Request.keep
    max_recording: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="End a cell whose recording grows beyond this size, for example 20G.",
            rich_help_panel=_WHERE,
        ),
    ] = None
    out: Out = None
    resume: Annotated[
        Path | None,
        typer.Option(
            parser=run_path,
            metavar="DIR",
            help="Resume an interrupted run.",
            rich_help_panel=_WHERE,
        ),
    ] = None
    trust: Trust = False
    dry_run: DryRun = False
    json: Json = False
    csv: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The rows as CSV; - for standard output.", rich_help_panel=_WHERE
        ),
    ] = None
    markdown: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The tables as Markdown; - for standard output.",
            rich_help_panel=_WHERE,
        ),
    ] = None
    by_disk: Annotated[
        bool,
        typer.Option(
            "--by-disk",
            help="Add a row for each disk to every table and export.",
            rich_help_panel=_WHERE,
        ),
    ] = False
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="Add intervals, verdicts and more columns.", rich_help_panel=_WHERE
        ),
    ] = False
