"""`fscost compare`: the front door."""

import sys
from dataclasses import replace
from pathlib import Path

import typer

from fscost import devices
from fscost.cli import options
from fscost.cli.labs import AUTO
from fscost.cli.measure import Place, measure, several
from fscost.cli.output.emit import Outputs
from fscost.cli.request import (
    Request,
    absolute_images,
    absolute_models,
    resumed,
    with_range,
)
from fscost.cli.variants import variants
from fscost.errors import InputError
from fscost.results import load
from fscost.view.grid import plain
from fscost.view.run import Choice


def compare(
    context: typer.Context,
    command: options.Command = None,
    on: options.On = None,
    baseline: options.Baseline = None,
    workload: options.Workload = None,
    runs: options.Runs = None,
    lists: options.Lists = None,
    name: options.Name = None,
    env: options.Env = None,
    ignore_failure: options.IgnoreFailure = False,
    per: options.Per = None,
    fill: options.Fill = None,
    age: options.Age = None,
    setup: options.Setup = None,
    prepare: options.Prepare = None,
    conclude: options.Conclude = None,
    cleanup: options.Cleanup = None,
    aged: options.Aged = None,
    scale: options.Scale = None,
    source: options.Source = None,
    set_: options.Set = None,
    seed: options.Seed = Request.seed,
    settle: options.Settle = None,
    drop_caches: options.DropCaches = Request.drop_caches,
    probe: options.Probe = None,
    repetitions: options.Repetitions = None,
    min_repetitions: options.MinRepetitions = Request.min_repetitions,
    max_repetitions: options.MaxRepetitions = Request.max_repetitions,
    max_minutes: options.MaxMinutes = Request.max_minutes,
    metric: options.Metric = Request.metric,
    precision: options.Precision = Request.precision,
    timeout: options.Timeout = None,
    writable: options.Writable = None,
    network: options.Network = False,
    ssd: options.Ssd = None,
    lab: options.Lab = AUTO,
    kernel: options.Kernel = None,
    modules: options.Modules = None,
    size: options.Size = None,
    disk: options.Disk = None,
    logical_block_size: options.LogicalBlockSize = None,
    physical_block_size: options.PhysicalBlockSize = None,
    device: options.Device = None,
    erase_device: options.EraseDevice = None,
    force: options.Force = False,
    keep: options.Keep = Request.keep,
    max_recording: options.MaxRecording = None,
    out: options.Out = None,
    resume: options.Resume = None,
    trust: options.Trust = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    csv: options.Csv = None,
    markdown: options.Markdown = None,
    by_disk: options.ByDisk = False,
    wide: options.Wide = False,
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
        setup=tuple(map(_with_here, setup or ())),
        prepare=tuple(map(_with_here, prepare or ())),
        conclude=tuple(map(_with_here, conclude or ())),
        cleanup=tuple(map(_with_here, cleanup or ())),
        name=name,
        env=tuple(env or ()),
        ignore_failure=ignore_failure,
        per=per,
        fill=fill,
        age=age,
        aged=aged,
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
    place = Place(lab, out, resume, trust, tuple(erase_device or ()), force, dry_run)
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
