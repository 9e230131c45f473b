"""`fscost replay`: how long recorded requests would take on a hard disk, SD card or SSD."""

from pathlib import Path
from typing import Annotated

import typer

from fscost.cli import shared
from fscost.cli.kept import every_kept
from fscost.cli.usage import some_path
from fscost.errors import InputError


def replay(
    source: Annotated[
        Path,
        typer.Argument(
            parser=some_path,
            metavar="RECORDING|RUN|TRACE",
            help=(
                "A recording, a run's folder (all recordings that it kept), or a block trace"
                " (docs/traces.md)."
            ),
        ),
    ],
    disk: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=MODEL",
            help=(
                "Device of a disk: main=hdd-7200 or main=FILE.toml; repeatable. Others complete at"
                " once (ram)."
            ),
        ),
    ],
    profile: shared.OnlyProfiles = None,
    form: Annotated[
        shared.FormatName | None,
        typer.Option(
            "--format",
            help="Format of a trace. (default: detected from the content)",
            show_default=False,
        ),
    ] = None,
    seed: shared.Seed = 1,
    trust: shared.TrustRecordings = False,
    json_: shared.JsonTables = False,
    csv: shared.CsvTables = None,
    markdown: shared.MarkdownTables = None,
) -> None:
    """Estimate how long recorded requests would take on a hard disk, SD card or SSD."""
    from fscost import capture, latency
    from fscost.cli.output import replay as output
    from fscost.cli.output.emit import Outputs

    outputs = Outputs(json_, csv, markdown)
    outputs.check()
    models = latency.parse_models(disk)
    if form is not None or not (source.is_dir() or capture.is_recording(source)):
        if profile:
            raise InputError("--profile needs a recording", f"{source} is a trace: drop it")
        found = latency.replay_trace(source, models, form, seed=seed)
        output.emit(output.Report(str(source), [output.Entry("", 0, found)], True), outputs)
        return
    kept = every_kept(source, profile or [], trust=trust)
    for each in kept:
        if each.device_models:
            raise InputError(
                f"{each.title} was recorded with modelled disk times",
                "replay a run made without --disk; here, modelled times would count twice",
            )
    entries = [
        output.Entry(
            each.profile,
            each.repetition,
            latency.replay(each.recording, models, measured=sorted(each.measured), seed=seed),
        )
        for each in kept
    ]
    output.emit(output.Report(str(source), entries), outputs)
