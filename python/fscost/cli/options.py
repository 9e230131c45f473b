"""Options of `fscost compare`, grouped by the panels of its help."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.completion import metrics, profiles, workloads
from fscost.cli.declare import option
from fscost.cli.shared import Repeated
from fscost.cli.usage import run_path, some_path
from fscost.request.model import AUTO, DEFAULT_PROFILES, DEFAULT_WORKLOAD, Request

_HOW, _WHERE = "Measurement", "Output"
_what = partial(option, rich_help_panel="Profiles and workload")
_how = partial(option, rich_help_panel=_HOW)
_enough = partial(option, rich_help_panel="Repetitions")
_where = partial(option, rich_help_panel=_WHERE)
_disk = partial(option, rich_help_panel="The disk")

Lab = Annotated[
    str,
    typer.Option(
        metavar="native|vm",
        help="Run on this kernel as root, or in guests. (default: native if it can run here)",
        show_default=False,
        rich_help_panel=_HOW,
    ),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|auto",
        help="Run the cells on the machines of this Ray cluster, in guests (docs/clusters.md).",
        rich_help_panel=_HOW,
    ),
]
RecordingsTo = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=(
            "Let the machines of a cluster put the recordings here: file:///mnt/runs,"
            " s3://bucket/runs."
        ),
        rich_help_panel=_HOW,
    ),
]
Kernel = Annotated[
    Repeated,
    typer.Option(
        metavar="SERIES|host|VMLINUZ",
        help="Kernel of guests: Debian's (such as 6.12), this host's, or an image; repeat to compare.",
        rich_help_panel=_HOW,
    ),
]
Modules = Annotated[
    Repeated,
    typer.Option(
        metavar="DIR",
        help="Module folder (/lib/modules/VERSION) of each --kernel image, in the same order.",
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
Wait = Annotated[
    bool,
    typer.Option(
        "--wait",
        help="Wait while another run of fscost is in progress on this machine.",
        rich_help_panel=_WHERE,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print every command, run none.", rich_help_panel=_WHERE)
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
        Repeated,
        typer.Argument(
            metavar="[-- COMMAND…]",
            help=(
                "The command to measure. It starts in the new, empty file system; {here} is the"
                " current folder."
            ),
        ),
    ] = None
    on: Repeated = _what(
        autocompletion=profiles,
        metavar="PROFILE",
        help=(
            "Profile to measure: type, mkfs flags, -o with mount options; {a,b} is a choice;"
            f" repeatable. (default: {', '.join(DEFAULT_PROFILES)})"
        ),
    )
    design: str = _what(
        default=Request.design,
        metavar="full|screening",
        help=(
            "Combinations of the choices in braces: all, or few that still show each choice's own"
            " effect."
        ),
    )
    baseline: str | None = _what(
        autocompletion=profiles,
        metavar="PROFILE",
        help="Profile that ratios are computed against. (default: the first)",
    )
    workload: str | None = _what(
        autocompletion=workloads,
        metavar="NAME",
        help=f"A built-in workload. (default: {DEFAULT_WORKLOAD})",
    )
    runs: Repeated = _what(
        "--run", metavar="NAME=COMMAND", help="A named shell command; repeat to compare several."
    )
    lists: Repeated = _what(
        "-L",
        "--parameter-list",
        metavar="NAME VALUE,…",
        help="Make one run per value, substituted for {NAME}; repeat for all combinations.",
    )
    ranges: Repeated = _what(
        "-P",
        "--parameter-range",
        metavar="NAME FROM..TO[:STEP]",
        help="As -L, with the numbers of a range: -P size 1..10:2 is 1, 3, 5, 7 and 9.",
    )
    name: str | None = _where(
        "-n", "--name", metavar="NAME", help="Name of the run, in its title and folder."
    )
    env: Repeated = _what(
        metavar="KEY=VALUE", help="Environment variable of the command; repeatable."
    )
    ignore_failure: bool = _how(
        "--ignore-failure",
        default=False,
        help="Measure the command even if it exits with an error.",
    )
    warmup: int = _what(
        "-w",
        "--warmup",
        default=Request.warmup,
        metavar="N",
        help="Run the command N times, unmeasured, before the measured one in each cell.",
    )
    per: str | None = _what(
        metavar="N:WORD",
        help="Number and name of the command's operations (500:tx), to show bytes per operation.",
    )
    fill: str | None = _disk(
        metavar="PERCENT", help="Fill the disk before the workload, for example 90%."
    )
    age: int | None = _disk(
        metavar="N", help="Rounds of creating and deleting files before the workload."
    )
    setup: Repeated = _what(
        metavar="COMMAND",
        help="Run this shell command on this machine, once before the run; repeatable.",
    )
    step: Repeated = _what(
        metavar="NAME=COMMAND",
        help=(
            "Measure this shell command as a phase of its own, in place of the one after --;"
            " repeatable, in order."
        ),
    )
    prepare: Repeated = _what(
        metavar="COMMAND",
        help=(
            "Run this shell command, unmeasured, before the measured one in each cell; repeatable."
        ),
    )
    conclude: Repeated = _what(
        metavar="COMMAND",
        help=(
            "Run this shell command, unmeasured, after the measured one in each cell; repeatable."
        ),
    )
    cleanup: Repeated = _what(
        metavar="COMMAND",
        help="Run this shell command on this machine, once after the run; repeatable.",
    )
    aged: float | None = _what(
        metavar="DAYS",
        help="Set the times of prepared files back by DAYS, because relatime depends on them.",
    )
    scale: float | None = _what(help="Size factor of a built-in workload; 1 is its default size.")
    source: Path | None = _what(
        parser=some_path, metavar="PATH", help="The repository or tarball that a workload uses."
    )
    set: Repeated = _what(
        "--set",
        metavar="KEY=VALUE",
        help="An option of the workload; KEY={a,b} makes a run of each; repeatable.",
    )
    seed: int = _what(default=Request.seed, help="Seed for all random choices.")
    settle: str | None = _how(
        metavar="sync|remount|none",
        help=(
            "How each phase ends; after 'none', late writes count in later phases. (default:"
            " as the workload says)"
        ),
    )
    drop_caches: bool = _how(
        "--drop-caches", default=Request.drop_caches, help="Empty the page cache before each phase."
    )
    probe: int | None = _how(
        metavar="MS",
        help="Make and remove a directory at this interval, and measure how long that takes.",
    )
    repetitions: int | None = _enough(
        "-r", "--repetitions", metavar="N", help="Exact number of repetitions."
    )
    min_repetitions: int = _enough(default=Request.min_repetitions, help="Minimum repetitions.")
    max_repetitions: int = _enough(default=Request.max_repetitions, help="Maximum repetitions.")
    max_cells: int | None = _enough(
        metavar="N", help="Refuse to start if the runs could take more cells than this."
    )
    max_minutes: float = _enough(
        default=Request.max_minutes,
        help="Time limit of the run; the first repetition is always completed.",
    )
    metric: str = _enough(
        default=Request.metric,
        autocompletion=metrics,
        help="Metric whose 95 % interval decides when the run ends.",
    )
    precision: float = _enough(
        default=Request.precision, help="End when the interval is this narrow: 0.02 is ± 2 %."
    )
    timeout: str | None = _how(
        metavar="DURATION",
        help=(
            "Time limit for each cell, for example 90s or 2h. (default: 30 minutes for each"
            " step, or what the workload says)"
        ),
    )
    writable: Repeated = _how(
        metavar="DIR",
        help="Let the command write to this host folder; repeatable. Native lab only.",
    )
    network: bool = _how(
        "--network", default=False, help="Give the command this machine's network. Native lab only."
    )
    ssd: str | None = _how(
        metavar="MODEL|FILE.toml",
        help="Add NAND bytes and the lifetime of this device (see `fscost devices`).",
    )
    lab: Lab = AUTO
    on_cluster: OnCluster = None
    recordings_to: RecordingsTo = None
    kernel: Kernel = None
    modules: Modules = None
    size: str | None = _disk(
        metavar="SIZE",
        help="Size of the disk, for example 4G. (default: 4G, or what the workload needs)",
    )
    disk: Repeated = _disk(
        metavar="NAME=MODEL[,size=SIZE]",
        help=(
            "Device model whose timing the disk gets, or /dev/X to ERASE and record; repeatable."
        ),
    )
    logical_block_size: int | None = _disk(
        metavar="BYTES", help="Logical sector size. (default: 512)"
    )
    physical_block_size: int | None = _disk(
        metavar="BYTES", help="Physical sector size. (default: 4096)"
    )
    device: str | None = _disk(
        metavar="/dev/X", help="Use this real block device instead of recorded disks, and ERASE it."
    )
    erase_device: Repeated = _disk(
        metavar="/dev/X",
        help=(
            "Confirm that the device of --device or --disk may be erased: repeat its path;"
            " repeatable."
        ),
    )
    force: bool = _disk("--force", default=False, help="Erase the device even if it is not empty.")
    crash: bool = _where(
        "--crash",
        default=False,
        help="Also cut the power of each profile: a column with the verdict (`fscost crash`).",
    )
    keep: str = _where(
        default=Request.keep,
        metavar="all|one|none",
        help="Recordings kept: all, one of each profile, none.",
    )
    max_recording: str | None = _where(
        metavar="SIZE", help="End a cell whose recording grows beyond this size, for example 20G."
    )
    out: Out = None
    resume: Path | None = _where(parser=run_path, metavar="DIR", help="Resume an interrupted run.")
    trust: Trust = False
    wait: Wait = False
    dry_run: DryRun = False
    show_output: bool = _where(
        "--show-output",
        default=False,
        help="Print the command's output after each cell, on standard error.",
    )
    json: Json = False
    csv: str | None = _where(metavar="FILE", help="The rows as CSV; - for standard output.")
    markdown: str | None = _where(
        metavar="FILE", help="The tables as Markdown; - for standard output."
    )
    by_disk: bool = _where(
        "--by-disk", default=False, help="Add a row for each disk to every table and export."
    )
    wide: bool = _where("--wide", default=False, help="Add intervals, verdicts and more columns.")
    brief: bool = _where("--brief", default=False, help="Print the answer alone.")
