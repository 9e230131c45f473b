"""Options of `fscost compare`, grouped by the panels of its help."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.completion import metrics, profiles, workloads
from fscost.cli.shared import Repeated
from fscost.cli.usage import run_path, some_path
from fscost.request import AUTO, DEFAULT_PROFILES, DEFAULT_WORKLOAD, KERNELS, Request

_what = partial(typer.Option, rich_help_panel="Profiles and workload")
_how = partial(typer.Option, rich_help_panel="Measurement")
_enough = partial(typer.Option, rich_help_panel="Repetitions")
_where = partial(typer.Option, rich_help_panel="Output")
_disk = partial(typer.Option, rich_help_panel="The disk")

Lab = Annotated[
    str,
    _how(
        metavar="native|vm",
        help="Run on this kernel as root, or in guests. (default: native if it can run here)",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    _where(
        "-o",
        "--out",
        parser=some_path,
        metavar="DIR",
        help="Folder for the results. (default: fscost-runs/TIME-NAME)",
    ),
]
Trust = Annotated[
    bool, _where("--trust", help="Use a run's folder that another user owns or can write to.")
]
DryRun = Annotated[bool, _where("--dry-run", help="Print every command, run none.")]
Json = Annotated[
    bool, _where("--json", help="One JSON object on standard output, in place of the table.")
]


@dataclass(frozen=True)
class Options:
    """Options of `fscost compare`. A field of `Request` or `Place` has the same name here."""

    command: Annotated[
        Repeated,
        typer.Argument(
            metavar="[-- COMMAND…]",
            help=(
                "The command to measure. It starts in the new, empty file system; {here} is the"
                " current folder."
            ),
        ),
    ] = None
    on: Annotated[
        Repeated,
        _what(
            autocompletion=profiles,
            metavar="PROFILE",
            help=(
                "Profile to measure: type, mkfs flags, -o with mount options; repeatable. (default:"
                f" {', '.join(DEFAULT_PROFILES)})"
            ),
        ),
    ] = None
    baseline: Annotated[
        str | None,
        _what(
            autocompletion=profiles,
            metavar="PROFILE",
            help="Profile that ratios are computed against. (default: the first)",
        ),
    ] = None
    workload: Annotated[
        str | None,
        _what(
            autocompletion=workloads,
            metavar="NAME",
            help=f"A built-in workload. (default: {DEFAULT_WORKLOAD})",
        ),
    ] = None
    runs: Annotated[
        Repeated,
        _what(
            "--run",
            metavar="NAME=COMMAND",
            help="A named shell command; repeat to compare several.",
        ),
    ] = None
    lists: Annotated[
        Repeated,
        _what(
            "-L",
            "--parameter-list",
            metavar="NAME VALUE,…",
            help="Make one run per value, substituted for {NAME}; repeat for all combinations.",
        ),
    ] = None
    name: Annotated[
        str | None,
        _where("-n", "--name", metavar="NAME", help="Name of the run, in its title and folder."),
    ] = None
    env: Annotated[
        Repeated,
        _what(metavar="KEY=VALUE", help="Environment variable of the command; repeatable."),
    ] = None
    ignore_failure: Annotated[
        bool, _how("--ignore-failure", help="Measure the command even if it exits with an error.")
    ] = False
    per: Annotated[
        str | None,
        _what(
            metavar="N:WORD",
            help=(
                "Number and name of the command's operations (500:tx), to show bytes per operation."
            ),
        ),
    ] = None
    fill: Annotated[
        str | None,
        _disk(metavar="PERCENT", help="Fill the disk before the workload, for example 90%."),
    ] = None
    age: Annotated[
        int | None,
        _disk(metavar="N", help="Rounds of creating and deleting files before the workload."),
    ] = None
    setup: Annotated[
        Repeated,
        _what(
            metavar="COMMAND",
            help="Run this shell command on this machine, once before the run; repeatable.",
        ),
    ] = None
    prepare: Annotated[
        Repeated,
        _what(
            metavar="COMMAND",
            help=(
                "Run this shell command, unmeasured, before the measured one in each cell;"
                " repeatable."
            ),
        ),
    ] = None
    conclude: Annotated[
        Repeated,
        _what(
            metavar="COMMAND",
            help=(
                "Run this shell command, unmeasured, after the measured one in each cell;"
                " repeatable."
            ),
        ),
    ] = None
    cleanup: Annotated[
        Repeated,
        _what(
            metavar="COMMAND",
            help="Run this shell command on this machine, once after the run; repeatable.",
        ),
    ] = None
    aged: Annotated[
        float | None,
        _what(
            metavar="DAYS",
            help="Set the times of prepared files back by DAYS, because relatime depends on them.",
        ),
    ] = None
    scale: Annotated[
        float | None, _what(help="Size factor of a built-in workload; 1 is its default size.")
    ] = None
    source: Annotated[
        Path | None,
        _what(
            parser=some_path, metavar="PATH", help="The repository or tarball that a workload uses."
        ),
    ] = None
    set: Annotated[
        Repeated, _what("--set", metavar="KEY=VALUE", help="An option of the workload; repeatable.")
    ] = None
    seed: Annotated[int, _what(help="Seed for all random choices.")] = Request.seed
    settle: Annotated[
        str | None,
        _how(
            metavar="sync|remount|none",
            help=(
                "How each phase ends; after 'none', late writes count in later phases. (default:"
                " as the workload says)"
            ),
        ),
    ] = None
    drop_caches: Annotated[
        bool, _how("--drop-caches", help="Empty the page cache before each phase.")
    ] = Request.drop_caches
    probe: Annotated[
        int | None,
        _how(
            metavar="MS",
            help="Make and remove a directory at this interval, and measure how long that takes.",
        ),
    ] = None
    repetitions: Annotated[
        int | None, _enough("-r", "--repetitions", metavar="N", help="Exact number of repetitions.")
    ] = None
    min_repetitions: Annotated[int, _enough(help="Minimum repetitions.")] = Request.min_repetitions
    max_repetitions: Annotated[int, _enough(help="Maximum repetitions.")] = Request.max_repetitions
    max_minutes: Annotated[
        float, _enough(help="Time limit of the run; the first repetition is always completed.")
    ] = Request.max_minutes
    metric: Annotated[
        str,
        _enough(
            autocompletion=metrics, help="Metric whose 95 % interval decides when the run ends."
        ),
    ] = Request.metric
    precision: Annotated[
        float, _enough(help="End when the interval is this narrow: 0.02 is ± 2 %.")
    ] = Request.precision
    timeout: Annotated[
        str | None,
        _how(
            metavar="DURATION",
            help=(
                "Time limit for each cell, for example 90s or 2h. (default: 30 minutes for each"
                " step, or what the workload says)"
            ),
        ),
    ] = None
    writable: Annotated[
        Repeated,
        _how(
            metavar="DIR",
            help="Let the command write to this host folder; repeatable. Native lab only.",
        ),
    ] = None
    network: Annotated[
        bool, _how("--network", help="Give the command this machine's network. Native lab only.")
    ] = False
    ssd: Annotated[
        str | None,
        _how(
            metavar="MODEL|FILE.toml",
            help="Add NAND bytes and the lifetime of this device (see `fscost devices`).",
        ),
    ] = None
    lab: Lab = AUTO
    kernel: Annotated[
        Repeated,
        _how(
            metavar="VERSION|VMLINUZ",
            help=f"Kernel of guests: {', '.join(KERNELS)}, or an image; repeat to compare.",
        ),
    ] = None
    modules: Annotated[
        Repeated,
        _how(
            metavar="DIR",
            help="Module folder (/lib/modules/VERSION) of each --kernel image, in the same order.",
        ),
    ] = None
    size: Annotated[
        str | None,
        _disk(
            metavar="SIZE",
            help="Size of the disk, for example 4G. (default: 4G, or what the workload needs)",
        ),
    ] = None
    disk: Annotated[
        Repeated,
        _disk(
            metavar="NAME=MODEL[,size=SIZE]",
            help=(
                "Device model whose timing the disk gets, or /dev/X to ERASE and record;"
                " repeatable."
            ),
        ),
    ] = None
    logical_block_size: Annotated[
        int | None, _disk(metavar="BYTES", help="Logical sector size. (default: 512)")
    ] = None
    physical_block_size: Annotated[
        int | None, _disk(metavar="BYTES", help="Physical sector size. (default: 4096)")
    ] = None
    device: Annotated[
        str | None,
        _disk(
            metavar="/dev/X",
            help="Use this real block device instead of recorded disks, and ERASE it.",
        ),
    ] = None
    erase_device: Annotated[
        Repeated,
        _disk(
            metavar="/dev/X",
            help=(
                "Confirm that the device of --device or --disk may be erased: repeat its path;"
                " repeatable."
            ),
        ),
    ] = None
    force: Annotated[
        bool, _disk("--force", help="Erase the device even if it holds something.")
    ] = False
    keep: Annotated[
        str, _where(metavar="all|one|none", help="Recordings kept: all, one of each profile, none.")
    ] = Request.keep
    max_recording: Annotated[
        str | None,
        _where(
            metavar="SIZE",
            help="End a cell whose recording grows beyond this size, for example 20G.",
        ),
    ] = None
    out: Out = None
    resume: Annotated[
        Path | None, _where(parser=run_path, metavar="DIR", help="Resume an interrupted run.")
    ] = None
    trust: Trust = False
    dry_run: DryRun = False
    json: Json = False
    csv: Annotated[
        str | None, _where(metavar="FILE", help="The rows as CSV; - for standard output.")
    ] = None
    markdown: Annotated[
        str | None, _where(metavar="FILE", help="The tables as Markdown; - for standard output.")
    ] = None
    by_disk: Annotated[
        bool, _where("--by-disk", help="Add a row for each disk to every table and export.")
    ] = False
    wide: Annotated[bool, _where("--wide", help="Add intervals, verdicts and more columns.")] = (
        False
    )
