"""Options of `fscost compare`, panel by panel of its help."""

from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.completion import metrics, profiles, workloads
from fscost.cli.usage import run_path, some_path
from fscost.request import DEFAULT_PROFILES, DEFAULT_WORKLOAD, KERNELS

_WHAT = "What is compared"
_HOW = "How it is measured"
_ENOUGH = "When it is enough"
_WHERE = "Where it goes"
_DISK = "The disk"

Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND…]",
        help="The command to measure. It starts in the new, empty file system; {here} is the current folder.",
    ),
]
On = Annotated[
    list[str] | None,
    typer.Option(
        autocompletion=profiles,
        metavar="PROFILE",
        help=f"A file system as mkfs and mount spell it; repeat. (default: {', '.join(DEFAULT_PROFILES)})",
        rich_help_panel=_WHAT,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        autocompletion=profiles,
        metavar="PROFILE",
        help="Profile that ratios are computed against. (default: the first)",
        rich_help_panel=_WHAT,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        autocompletion=workloads,
        metavar="NAME",
        help=f"A built-in workload. (default: {DEFAULT_WORKLOAD})",
        rich_help_panel=_WHAT,
    ),
]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="NAME=COMMAND",
        help="A named shell command; repeat to compare several.",
        rich_help_panel=_WHAT,
    ),
]
Lists = Annotated[
    list[str] | None,
    typer.Option(
        "-L",
        "--parameter-list",
        metavar="NAME VALUE,…",
        help="A run for each value, which replaces {NAME}; repeat for combinations.",
        rich_help_panel=_WHAT,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--name",
        metavar="NAME",
        help="Name of the run, in its title and folder.",
        rich_help_panel=_WHERE,
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Environment variable of the command; repeat.",
        rich_help_panel=_WHAT,
    ),
]
IgnoreFailure = Annotated[
    bool,
    typer.Option(
        "--ignore-failure",
        help="Measure the command even if it exits with an error.",
        rich_help_panel=_HOW,
    ),
]
Per = Annotated[
    str | None,
    typer.Option(
        metavar="N:WORD",
        help="Operations that the command does, for a column of bytes per operation: 500:tx.",
        rich_help_panel=_WHAT,
    ),
]
Fill = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Fill the disk before the workload, for example 90%.",
        rich_help_panel=_DISK,
    ),
]
Age = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Rounds of creating and deleting files before the workload.",
        rich_help_panel=_DISK,
    ),
]

Aged = Annotated[
    float | None,
    typer.Option(
        metavar="DAYS",
        help="Set back the times of prepared files, for relatime and lazytime.",
        rich_help_panel=_WHAT,
    ),
]

Setup = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND",
        help="A shell command on this machine, once before the run; repeat.",
        rich_help_panel=_WHAT,
    ),
]

Conclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND",
        help="A shell command after the measured one in each cell, not measured; repeat.",
        rich_help_panel=_WHAT,
    ),
]

Cleanup = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND",
        help="A shell command on this machine, once after the run; repeat.",
        rich_help_panel=_WHAT,
    ),
]

Prepare = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND",
        help="A shell command before the measured one in each cell, not measured; repeat.",
        rich_help_panel=_WHAT,
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(help="Size of a built-in workload; 1 is its own.", rich_help_panel=_WHAT),
]
Source = Annotated[
    Path | None,
    typer.Option(
        parser=some_path,
        metavar="PATH",
        help="The repository or tarball that a workload uses.",
        rich_help_panel=_WHAT,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="An option of the workload; repeat.",
        rich_help_panel=_WHAT,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed for all random choices.", rich_help_panel=_WHAT)]
Settle = Annotated[
    str | None,
    typer.Option(
        metavar="sync|remount|none",
        help="How each phase ends; none defers writes. (default: as the workload says)",
        rich_help_panel=_HOW,
    ),
]
DropCaches = Annotated[
    bool,
    typer.Option(
        "--drop-caches", help="Empty the page cache before each phase.", rich_help_panel=_HOW
    ),
]
Probe = Annotated[
    int | None,
    typer.Option(
        metavar="MS",
        help="Make and remove a directory at this interval, and time the pauses.",
        rich_help_panel=_HOW,
    ),
]
Repetitions = Annotated[
    int | None,
    typer.Option(
        "-r",
        "--repetitions",
        metavar="N",
        help="Exact number of repetitions.",
        rich_help_panel=_ENOUGH,
    ),
]
MinRepetitions = Annotated[int, typer.Option(help="Minimum repetitions.", rich_help_panel=_ENOUGH)]
MaxRepetitions = Annotated[int, typer.Option(help="Maximum repetitions.", rich_help_panel=_ENOUGH)]
MaxMinutes = Annotated[
    float,
    typer.Option(
        help="Time limit of the run; the first repetition is always completed.",
        rich_help_panel=_ENOUGH,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        autocompletion=metrics,
        help="Metric whose interval ends the run.",
        rich_help_panel=_ENOUGH,
    ),
]
Precision = Annotated[
    float,
    typer.Option(help="Interval that is narrow enough: 0.02 is ± 2 %.", rich_help_panel=_ENOUGH),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Time limit for each cell, for example 90s or 2h. (default: 30 minutes for each step, or what the workload says)",
        rich_help_panel=_HOW,
    ),
]
Writable = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIR",
        help="A folder of this machine that the command may write to; repeat. Native lab.",
        rich_help_panel=_HOW,
    ),
]
Network = Annotated[
    bool,
    typer.Option(
        "--network",
        help="Give the command this machine's network. Native lab.",
        rich_help_panel=_HOW,
    ),
]
Ssd = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL|FILE.toml",
        help="Add NAND bytes and the life of a device of `fscost devices`.",
        rich_help_panel=_HOW,
    ),
]
Lab = Annotated[
    str,
    typer.Option(
        metavar="native|vm",
        help="This kernel as root, or guests. (default: native where it can run)",
        rich_help_panel=_HOW,
    ),
]
Kernel = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION|VMLINUZ",
        help=f"Kernel of guests: {', '.join(KERNELS)}, or an image; repeat to compare.",
        rich_help_panel=_HOW,
    ),
]
Modules = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIR",
        help="/lib/modules/VERSION of each --kernel that is an image, in their order.",
        rich_help_panel=_HOW,
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Size of the disk, for example 4G. (default: 4G, or what the workload needs)",
        rich_help_panel=_DISK,
    ),
]
Disk = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=MODEL[,size=SIZE]",
        help="Device model that gives the disk its time, or /dev/X to record, ERASED; repeat.",
        rich_help_panel=_DISK,
    ),
]
LogicalBlockSize = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES", help="Logical sector size. (default: 512)", rich_help_panel=_DISK
    ),
]
PhysicalBlockSize = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES", help="Physical sector size. (default: 4096)", rich_help_panel=_DISK
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="/dev/X",
        help="A real block device, ERASED, in place of recorded disks.",
        rich_help_panel=_DISK,
    ),
]
EraseDevice = Annotated[
    list[str] | None,
    typer.Option(
        metavar="/dev/X",
        help="Confirms --device, or a device of --disk: the same path again; repeat.",
        rich_help_panel=_DISK,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Erase the device even if it holds something.", rich_help_panel=_DISK
    ),
]
Keep = Annotated[
    str,
    typer.Option(
        metavar="all|one|none",
        help="Recordings kept: all, one of each profile, none.",
        rich_help_panel=_WHERE,
    ),
]
MaxRecording = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="End a cell whose recording grows beyond this size, for example 20G.",
        rich_help_panel=_WHERE,
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
Resume = Annotated[
    Path | None,
    typer.Option(
        parser=run_path,
        metavar="DIR",
        help="Resume an interrupted run.",
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
Csv = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The rows as CSV; - for standard output.", rich_help_panel=_WHERE
    ),
]
Markdown = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The tables as Markdown; - for standard output.",
        rich_help_panel=_WHERE,
    ),
]
ByDisk = Annotated[
    bool,
    typer.Option(
        "--by-disk",
        help="Add a row for each disk to every table and export.",
        rich_help_panel=_WHERE,
    ),
]
Wide = Annotated[
    bool,
    typer.Option(
        "--wide", help="Add intervals, verdicts and more columns.", rich_help_panel=_WHERE
    ),
]
