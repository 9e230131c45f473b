"""`fscost study`: published experiments, run again and judged."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fscost import files, run, study
from fscost.cli.help import Command
from fscost.cli.lines import print_lines, say
from fscost.cli.output.emit import STDOUT, Outputs, write
from fscost.cli.progress import progress
from fscost.cli.usage import Commands, some_path
from fscost.errors import InputError
from fscost.lab.base import Lab
from fscost.report import study as output
from fscost.request import AUTO, KERNELS, absolute_images, choose_lab, parse_options
from fscost.results import RunResults, load
from fscost.run import RunOutcome, RunSpec
from fscost.view.grid import plain
from fscost.view.run import Choice
from fscost.view.study import study_view

app = typer.Typer(
    name="study",
    cls=Commands,
    help="Published experiments, run again: published beside measured, a verdict for each claim.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output, in place of the tables.")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Use a run's folder that another user owns or can write to.")
]
ByDisk = Annotated[
    bool,
    typer.Option("--by-disk", help="Add a table of each disk, and rows for each disk to JSON."),
]
Markdown = Annotated[
    str | None, typer.Option(metavar="FILE", help="The report as Markdown; - for standard output.")
]


@app.command("list", cls=Command)
def list_() -> None:
    """List the studies, one line each, and their scales."""
    for found in study.catalogue():
        print_lines(
            [
                (found.name, found.summary),
                *((f"  --scale {scale.name}", scale.summary) for scale in found.scales.values()),
            ]
        )


@app.command("run", cls=Command)
def run_(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="`fscost study list` lists them.")],
    scale: Annotated[
        str,
        typer.Option(
            metavar="small|full",
            help="small: minutes. full: as published, as far as one machine can.",
        ),
    ] = "small",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An option of its workload; repeat."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed for all random choices.")] = 0,
    min_repetitions: Annotated[
        int | None, typer.Option(help="Minimum repetitions. (default: as the scale says)")
    ] = None,
    max_repetitions: Annotated[
        int | None, typer.Option(help="Maximum repetitions. (default: as the scale says)")
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(help="Time limit of the run; two repetitions are always completed."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=some_path,
            metavar="DIR",
            help="Folder for the results. (default: fscost-runs/TIME-study-NAME)",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(parser=some_path, metavar="DIR", help="Resume an interrupted run."),
    ] = None,
    trust: Trust = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every command, run none.")
    ] = False,
    json: Json = False,
    markdown: Markdown = None,
    by_disk: ByDisk = False,
    lab: Annotated[
        str,
        typer.Option(
            metavar="native|vm",
            help="This kernel as root, or guests. (default: native where it can run)",
        ),
    ] = AUTO,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION|VMLINUZ",
            help=f"Kernel of guests: {', '.join(KERNELS)}, or an image; repeat to judge each.",
        ),
    ] = None,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="/lib/modules/VERSION of each --kernel that is an image, in their order.",
        ),
    ] = None,
) -> None:
    """Run a published experiment on this machine and judge its claims by what was measured."""
    outputs = Outputs(json=json, markdown=markdown, choice=Choice(is_by_disk=by_disk))
    outputs.check()
    found = study.load(name)
    if resume is not None:
        if out is not None:
            raise InputError("--resume and --out cannot be combined", "drop --out")
        before = load(resume, trust=trust)
        asked = _earlier(before, name)
        scale, options, seed = asked["scale"], asked["set"], before.manifest.seed
        kernels, folders = asked.get("kernel", []), asked.get("modules", [])
        lab = before.manifest.lab if lab == AUTO else lab
        _refuse_others(context, resume)
        given = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
        given += [
            word
            for option, named in (("--kernel", kernels), ("--modules", folders))
            for each in named
            for word in (option, each)
        ]
        words = ["fscost", "study", "run", name, "--scale", scale, *given]
        say(f"resuming {resume}: {shlex.join(words)}")
    else:
        options = parse_options(set_ or ())
        kernels, folders = (
            absolute_images(kernel or ()),
            [str(Path(each).absolute()) for each in modules or ()],
        )
    spec = study.plan(
        found,
        study.scale_of(found, scale),
        resume or out or run.default_folder(f"study-{name}"),
        seed=seed,
        options=options,
        kernels=kernels,
        modules=folders,
        min_repetitions=min_repetitions,
        max_repetitions=max_repetitions,
        max_minutes=max_minutes,
        resume=resume is not None,
        trust=trust,
        command_line=sys.argv,
    )
    chosen, lock = choose_lab(lab, spec, None, folders, say=say)
    if dry_run:
        for profile, commands in run.commands(spec, chosen).items():
            print(plain("\n".join([f"# {profile}", *commands])))
        return
    outcome = _execute(spec, chosen, lock)
    if outcome.results.manifest.cells:
        report = study.report(found, outcome.results)
        output.keep(report)
        _emit(report, outputs)
    if outcome.interrupted:
        again = f"resume with: fscost study run {name} --resume {shlex.quote(str(spec.folder))}"
        nothing = "no cell was finished, so nothing is kept"
        say(f"interrupted; {again if outcome.results.manifest.cells else nothing}")
    raise typer.Exit(outcome.exit_code)


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
    trust: Trust = False,
) -> None:
    """Judge a finished run again, by the rules as they are now, and print the report."""
    outputs = Outputs(json=json, markdown=markdown, choice=Choice(is_by_disk=by_disk))
    outputs.check()
    results = load(folder, trust=trust)
    _emit(study.report(_study_of(results), results), outputs)


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
    trust: Trust = False,
) -> None:
    """Write one Markdown page about runs of several studies: verdicts, numbers and pictures."""
    files.check_output(out)
    found = [load(folder, trust=trust) for folder in folders]
    reports = [study.report(_study_of(results), results) for results in found]
    # Charts take a second to import, and a wrong path must be told at once.
    from fscost.report import posts

    command = shlex.join(["fscost", "study", "page", *map(str, folders), "-o", str(out)])
    for path in posts.write(reports, out, plain(command)):
        print(path)


def _study_of(results: RunResults) -> study.Study:
    """The study of a run; InputError for a run of `fscost compare`, whose request names none."""
    name = results.manifest.request.get("study")
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{results.folder} is not the run of a study",
            f"`fscost show {results.folder}` prints its tables",
        )
    return study.load(name)


def _execute(spec: RunSpec, lab: Lab, lock: str) -> RunOutcome:
    listener = progress()
    try:
        return run.execute(spec, lab, listener, lock)
    finally:
        listener.close()


def _emit(report: study.Report, outputs: Outputs) -> None:
    by_disk = outputs.choice.is_by_disk
    text = (
        None
        if outputs.markdown is None
        else output.markdown_text(study_view(report, is_by_disk=by_disk))
    )
    if text is not None and outputs.markdown is not None and outputs.markdown != STDOUT:
        write(Path(outputs.markdown), text)
    if outputs.json:
        sys.stdout.write(plain(output.json_text(report, is_by_disk=by_disk)))
    elif text is not None and outputs.markdown == STDOUT:
        sys.stdout.write(plain(text))
    else:
        output.show(report, sys.stdout, is_by_disk=by_disk)


def _earlier(results: RunResults, name: str) -> Mapping[str, Any]:
    """The request of a run that is resumed, checked: it comes from a file."""
    request = results.manifest.request
    options, named = request.get("set"), [request.get("kernel", []), request.get("modules", [])]
    sound = (
        isinstance(request.get("scale"), str)
        and isinstance(options, dict)
        and all(isinstance(value, str) for value in options.values())
    )
    sound = sound and all(
        isinstance(each, list) and all(isinstance(value, str) for value in each) for each in named
    )
    if request.get("study") != name or not sound:
        raise InputError(
            f"{results.folder} is not a run of the study {name}",
            "name the study and the folder of the run that was interrupted",
        )
    return request


def _refuse_others(context: typer.Context, folder: Path) -> None:
    """What a cell is cannot change on resume; how many there are can."""
    for option in ("scale", "set_", "seed", "kernel", "modules"):
        if str(context.get_parameter_source(option)).endswith("COMMANDLINE"):
            raise InputError(
                f"--resume {folder} continues as it began; --{option.strip('_')} would change it",
                "leave the option out, or start a new run",
            )
