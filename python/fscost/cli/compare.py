"""`fscost compare`: the front door."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import typer

from fscost.cli import options
from fscost.cli.lines import say
from fscost.cli.measure import measure, several
from fscost.cli.output.emit import Outputs
from fscost.cli.variants import variants
from fscost.errors import InputError
from fscost.request import AUTO, Place, Request, absolute, resumed, with_range
from fscost.results import load
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

    fscost compare --on ext4 --on 'ext4 -o commit={5,30}' -- 'tar xf {here}/src.tar && make -C src'

    The command starts in the new file system, which is empty; {here} is the folder that you are in.
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
    asked = _asked(
        {**context.params, "min_repetitions": min_repetitions, "max_repetitions": max_repetitions}
    )
    place = Place(lab, out, resume, trust, tuple(erase_device or ()), force, dry_run)
    if resume is not None:
        if out is not None or runs or lists:
            option = "--out" if out is not None else "--run" if runs else "-L"
            raise InputError(f"--resume and {option} cannot be combined", f"drop {option}")
        before = load(resume, trust=trust).manifest
        asked = resumed(before.request, asked, given, resume)
        say(f"resuming {resume}: {asked.command_line()}")
        place = replace(place, lab=before.lab if lab == AUTO else lab)
        found = {"": asked}
    else:
        asked = with_range(asked, given)
        found = {
            name: absolute(each) for name, each in variants(asked, runs or (), lists or ()).items()
        }
    if len(found) > 1:
        raise typer.Exit(several(found, place, outputs))
    [only] = found.values()
    outcome = measure(only, place)
    if outcome is None:
        return
    if outcome.results.manifest.cells:
        outputs.emit(outcome.results)
    raise typer.Exit(outcome.exit_code)


def _asked(values: Mapping[str, Any]) -> Request:
    """The options that a request has, by their names."""
    found: dict[str, Any] = {}
    for field in fields(Request):
        value = values["set_" if field.name == "set" else field.name]
        found[field.name] = tuple(value or ()) if isinstance(field.default, tuple) else value
    return absolute(Request(**found))


def _given(context: typer.Context) -> list[str]:
    """Names of the options that stand on the command line."""
    given = [
        name
        for name in context.params
        if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
    ]
    return ["set" if name == "set_" else name for name in given]
