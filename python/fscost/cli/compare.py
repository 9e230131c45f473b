"""`fscost compare`: the front door."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fscost import devices
from fscost.cli.completion import metrics, profiles, workloads
from fscost.cli.labs import AUTO, KERNELS
from fscost.cli.measure import Place, measure, several
from fscost.cli.output.emit import Outputs
from fscost.cli.request import (
    DEFAULT_PROFILES,
    DEFAULT_WORKLOAD,
    Request,
    absolute_images,
    absolute_models,
    resumed,
    with_range,
)
from fscost.cli.usage import run_path, some_path
from fscost.cli.variants import variants
from fscost.errors import InputError
from fscost.results import load
from fscost.view.grid import plain
from fscost.view.run import Choice

_WHAT = "What is compared"
_HOW = "How it is measured"
_ENOUGH = "When it is enough"
_WHERE = "Where it goes"
_DISK = "The disk"


def compare(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND…]", help="The command to measure, run on the file system."
        ),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=profiles,
            metavar="PROFILE",
            help=f"A file system as mkfs and mount spell it; repeat. (default: {', '.join(DEFAULT_PROFILES)})",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            autocompletion=profiles,
            metavar="PROFILE",
            help="What ratios are to. (default: the first)",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            autocompletion=workloads,
            metavar="NAME",
            help=f"A built-in workload. (default: {DEFAULT_WORKLOAD})",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="NAME=COMMAND",
            help="A command by name, for the shell; repeat to relate several.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    lists: Annotated[
        list[str] | None,
        typer.Option(
            "-L",
            "--parameter-list",
            metavar="NAME VALUE,…",
            help="A run for each value, put in place of {NAME}; repeat for combinations.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--name",
            metavar="NAME",
            help="Name of the run, in its title and folder.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Environment variable of the command; repeat.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    ignore_failure: Annotated[
        bool,
        typer.Option(
            "--ignore-failure",
            help="Measure the command even if it exits with an error.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    per: Annotated[
        str | None,
        typer.Option(
            metavar="N:WORD",
            help="Operations that the command does, for a column of bytes per operation: 500:tx.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    fill: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Fill the disk before the workload, for example 90%.",
            rich_help_panel=_DISK,
        ),
    ] = None,
    prepare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="A shell command before it, not measured; repeat.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Size of a built-in workload; 1 is its own.", rich_help_panel=_WHAT),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            parser=some_path,
            metavar="PATH",
            help="The repository or tarball that a workload uses.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="An option of the workload; repeat.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of everything random.", rich_help_panel=_WHAT)
    ] = Request.seed,
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="sync|remount|none",
            help="How each phase ends; none leaves writes to the unmount. (default: as the workload says)",
            rich_help_panel=_HOW,
        ),
    ] = None,
    drop_caches: Annotated[
        bool,
        typer.Option(
            "--drop-caches", help="Empty the page cache before each phase.", rich_help_panel=_HOW
        ),
    ] = Request.drop_caches,
    probe: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            help="Make and remove a directory at this interval, and time the pauses.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--repetitions",
            metavar="N",
            help="Exactly so many repetitions.",
            rich_help_panel=_ENOUGH,
        ),
    ] = None,
    min_repetitions: Annotated[
        int, typer.Option(help="At least.", rich_help_panel=_ENOUGH)
    ] = Request.min_repetitions,
    max_repetitions: Annotated[
        int, typer.Option(help="At most.", rich_help_panel=_ENOUGH)
    ] = Request.max_repetitions,
    max_minutes: Annotated[
        float,
        typer.Option(
            help="At most; the first repetition is always completed.", rich_help_panel=_ENOUGH
        ),
    ] = Request.max_minutes,
    metric: Annotated[
        str,
        typer.Option(
            autocompletion=metrics,
            help="The metric whose interval decides.",
            rich_help_panel=_ENOUGH,
        ),
    ] = Request.metric,
    precision: Annotated[
        float, typer.Option(help="Narrow enough: 0.02 is ± 2 %.", rich_help_panel=_ENOUGH)
    ] = Request.precision,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Time limit for each cell, for example 90s or 2h. (default: 30 minutes for each step, or what the workload says)",
            rich_help_panel=_HOW,
        ),
    ] = None,
    writable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="A folder of this machine that the command may write to; repeat. Native lab.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    network: Annotated[
        bool,
        typer.Option(
            "--network",
            help="Give the command this machine's network. Native lab.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    ssd: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|FILE.toml",
            help="Add what a device of `fscost devices` would have programmed, and its life.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    lab: Annotated[
        str,
        typer.Option(
            metavar="native|vm",
            help="This kernel as root, or guests. (default: native where it can)",
            rich_help_panel=_HOW,
        ),
    ] = AUTO,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION|VMLINUZ",
            help=f"Of guests: {', '.join(KERNELS)}, or an image; repeat to compare.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="/lib/modules/VERSION of each --kernel that is an image, in their order.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Of the disk, for example 4G. (default: 4G, or what the workload needs)",
            rich_help_panel=_DISK,
        ),
    ] = None,
    disk: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL[,size=SIZE]",
            help="Give a disk the time of a device of `fscost devices` or FILE.toml; repeat.",
            rich_help_panel=_DISK,
        ),
    ] = None,
    logical_block_size: Annotated[
        int | None, typer.Option(metavar="BYTES", help="(default: 512)", rich_help_panel=_DISK)
    ] = None,
    physical_block_size: Annotated[
        int | None, typer.Option(metavar="BYTES", help="(default: 4096)", rich_help_panel=_DISK)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="/dev/X",
            help="A real block device, ERASED, in place of recorded disks.",
            rich_help_panel=_DISK,
        ),
    ] = None,
    erase_device: Annotated[
        str | None,
        typer.Option(
            metavar="/dev/X", help="Confirms --device: the same path again.", rich_help_panel=_DISK
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Erase the device even if it holds something.", rich_help_panel=_DISK
        ),
    ] = False,
    keep: Annotated[
        str,
        typer.Option(
            metavar="all|one|none",
            help="Recordings kept: all, one of each profile, none.",
            rich_help_panel=_WHERE,
        ),
    ] = Request.keep,
    max_recording: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="End a cell whose recording grows beyond it, for example 20G.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            parser=some_path,
            metavar="DIR",
            help="Folder for the results. (default: fscost-runs/TIME-NAME)",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            parser=run_path,
            metavar="DIR",
            help="Go on with an interrupted run.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Use a run's folder that another user owns or can write to.",
            rich_help_panel=_WHERE,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print every command, run none.", rich_help_panel=_WHERE),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="One JSON object on standard output, in place of the table.",
            rich_help_panel=_WHERE,
        ),
    ] = False,
    csv: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The rows as CSV; - for standard output.", rich_help_panel=_WHERE
        ),
    ] = None,
    markdown: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The tables as Markdown; - for standard output.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    by_disk: Annotated[
        bool,
        typer.Option(
            "--by-disk",
            help="Add a row for each disk to every table and export.",
            rich_help_panel=_WHERE,
        ),
    ] = False,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="Add intervals, verdicts and more columns.", rich_help_panel=_WHERE
        ),
    ] = False,
) -> None:
    """Measure what file systems cost for a workload, and compare them.

    Without arguments: five profiles and a small workload. A profile is written as people write it:
    the type, mkfs's own flags, -o and mount options.

    fscost compare --on ext4 --on 'ext4 -o noatime' --on btrfs -- make -j2
    """
    outputs = Outputs(json, csv, markdown, Choice(is_by_disk=by_disk, is_wide=wide))
    outputs.check()
    given = _given(context)
    if repetitions is not None:
        if {"min_repetitions", "max_repetitions"} & set(given):
            raise InputError(
                "--repetitions sets both bounds", "drop --min-repetitions and --max-repetitions"
            )
        min_repetitions = max_repetitions = repetitions
        given += ["min_repetitions", "max_repetitions"]
    asked = Request(
        on=tuple(on or ()),
        baseline=baseline,
        workload=workload,
        command=tuple(map(_with_here, command or ())),
        prepare=tuple(map(_with_here, prepare or ())),
        name=name,
        env=tuple(env or ()),
        ignore_failure=ignore_failure,
        per=per,
        fill=fill,
        scale=scale,
        source=None if source is None else str(source.absolute()),
        set=tuple(set_ or ()),
        seed=seed,
        size=size,
        min_repetitions=min_repetitions,
        max_repetitions=max_repetitions,
        max_minutes=max_minutes,
        metric=metric,
        precision=precision,
        settle=settle,
        drop_caches=drop_caches,
        probe=probe,
        keep=keep,
        device=None if device is None else str(Path(device).absolute()),
        timeout=timeout,
        max_recording=max_recording,
        writable=tuple(str(Path(each).resolve()) for each in writable or ()),
        network=network,
        ssd=_absolute_device(ssd),
        kernel=tuple(absolute_images(kernel or ())),
        modules=tuple(str(Path(each).absolute()) for each in modules or ()),
        disk=tuple(absolute_models(disk or ())),
        logical_block_size=logical_block_size,
        physical_block_size=physical_block_size,
    )
    place = Place(lab, out, resume, trust, erase_device, force, dry_run)
    if resume is not None:
        if out is not None or runs or lists:
            option = "--out" if out is not None else "--run" if runs else "-L"
            raise InputError(f"--resume and {option} cannot be combined", f"drop {option}")
        before = load(resume, trust=trust).manifest
        asked = resumed(before.request, asked, given, resume)
        print(plain(f"resuming {resume}: {asked.command_line()}"), file=sys.stderr)
        place = replace(place, lab=before.lab if lab == AUTO else lab)
        found = {"": asked}
    else:
        found = variants(with_range(asked, given), runs or (), lists or ())
    if len(found) > 1:
        raise typer.Exit(several(found, place, outputs))
    [only] = found.values()
    outcome = measure(only, place)
    if outcome is None:
        return
    if outcome.results.manifest.cells:
        outputs.emit(outcome.results)
    raise typer.Exit(outcome.exit_code)


def _with_here(text: str) -> str:
    """`{here}` is the folder that fscost was started in."""
    return text.replace("{here}", str(Path.cwd())) if "{here}" in text else text


def _absolute_device(name: str | None) -> str | None:
    """What --ssd was given: a file from anywhere, a name as it is."""
    return str(Path(name).absolute()) if name is not None and devices.is_file_name(name) else name


def _given(context: typer.Context) -> list[str]:
    """Names of the options that stand on the command line."""
    given = [
        name
        for name in context.params
        if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
    ]
    return ["set" if name == "set_" else name for name in given]
