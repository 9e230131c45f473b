"""`fscost study`, once its command line is parsed."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from fscost import files, run, study, typed
from fscost.cli.lines import print_document, print_lines, say, wrapped
from fscost.cli.measure import alone, execute, print_commands, say_interrupted
from fscost.cli.output.emit import STDOUT, Outputs, write
from fscost.cli.study import RunOptions
from fscost.errors import InputError
from fscost.report import study as output
from fscost.request.labs import choose_lab, lock_of
from fscost.request.model import AUTO
from fscost.request.prepare import Prepared
from fscost.request.request import absolute_images, parse_options
from fscost.results import RunResults, load
from fscost.view.grid import plain
from fscost.view.run import Choice
from fscost.view.study import study_answers, study_view

_LONGEST_BYTES = 1 << 20


def print_studies(*, is_json: bool) -> None:
    """Print the studies and their scales."""
    if is_json:
        entries = [
            {
                "name": found.name,
                "summary": found.summary,
                "scales": [
                    {"name": scale.name, "summary": scale.summary}
                    for scale in found.scales.values()
                ],
            }
            for found in study.catalogue()
        ]
        print_document("studies", {"studies": entries})
        return
    for found in study.catalogue():
        print_lines(
            [
                (found.name, found.summary),
                *((f"  --scale {scale.name}", scale.summary) for scale in found.scales.values()),
            ]
        )


def ran(context: typer.Context, options: RunOptions) -> None:
    """Run a study, and print the verdicts."""
    choice = Choice(is_by_disk=options.by_disk)
    outputs = Outputs(options.json, None, options.markdown, choice, is_brief=options.brief)
    outputs.check()
    name, lab = options.name, options.lab
    found = study.load(name)
    if (resume := options.resume) is not None:
        if options.out is not None:
            raise InputError("--resume and --out cannot be combined", "drop --out")
        before = load(resume, trust=options.trust)
        asked = _earlier(before, name)
        lab = before.manifest.lab if lab == AUTO else lab
        _refuse_others(context, resume)
        say(f"resuming {resume}: {shlex.join(['fscost', 'study', 'run', name, *asked.words()])}")
    else:
        asked = _Asked(
            options.scale,
            parse_options(options.set or ()),
            options.seed,
            None if options.source is None else options.source.absolute(),
            absolute_images(options.kernel or ()),
            [str(Path(each).absolute()) for each in options.modules or ()],
            options.disk or (),
            options.profile or (),
        )
    scale = study.scale_of(found, asked.scale)
    spec = study.plan(
        found,
        scale,
        resume or options.out or run.default_folder(f"study-{name}"),
        seed=asked.seed,
        options=asked.options,
        source=asked.source,
        kernels=asked.kernels,
        modules=asked.modules,
        disks=asked.disks,
        only=asked.profiles,
        min_repetitions=options.min_repetitions,
        max_repetitions=options.max_repetitions,
        max_minutes=options.max_minutes,
        resume=resume is not None,
        trust=options.trust,
        command_line=sys.argv,
    )
    prepared = Prepared(
        spec,
        run.Local(choose_lab(lab, spec, None, asked.modules, say=say).make(say)),
        lock_of(lab),
    )
    if options.dry_run:
        print_commands(prepared)
        return
    _say_what_it_decides(found, scale, asked.profiles)
    with alone(lab, wait=options.wait):
        outcome = execute(prepared)
    if outcome.results.manifest.cells:
        report = study.report(found, outcome.results)
        output.keep(report)
        _emit(report, outputs)
    say_interrupted(outcome, f"fscost study run {name}")
    raise typer.Exit(outcome.exit_code)


def shown(folder: Path, outputs: Outputs, *, trust: bool) -> None:
    """Print the report of a run's folder."""
    outputs.check()
    results = load(folder, trust=trust)
    _emit(study.report(_study_of(results), results), outputs)


def write_page(folders: Sequence[Path], out: Path, answers: Path | None, *, trust: bool) -> None:
    """Write the page about the runs, and print the names of its files."""
    files.check_output(out)
    prose = None if answers is None else answers_of(answers)
    found = [load(folder, trust=trust) for folder in folders]
    reports = [study.report(_study_of(results), results) for results in found]
    # Importing charts takes a second, and a wrong path must be reported at once.
    from fscost.report import posts

    more = [] if answers is None else ["--answers", str(answers)]
    command = shlex.join(["fscost", "study", "page", *map(str, folders), *more, "-o", str(out)])
    for path in posts.write(reports, out, plain(command), prose):
        print(path)


def _say_what_it_decides(found: study.Study, scale: study.Scale, only: Sequence[str]) -> None:
    left_open = found.left_open(scale, only)
    count = len(found.claims)
    decided = f"{count - len(left_open)} of {count}" if left_open else f"all {count}"
    say(f"scale {scale.name} can decide {decided} claims" + ", not:" * bool(left_open))
    for text in left_open:
        say(f"  {text}")


def answers_of(path: Path) -> dict[str, str]:
    """Read a paragraph by name of a study."""
    remedy = "write TOML such as journal-tax = 'TEXT'"
    try:
        with files.open_regular(path) as file:
            content = files.content(file, _LONGEST_BYTES)
        if content is None:
            raise InputError(f"{path} is larger than {_LONGEST_BYTES >> 20} MiB", remedy)
        found = typed.read(dict[str, str], typed.toml(content.decode()))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", remedy) from None
    except (ValueError, typed.InvalidError) as error:
        raise InputError(f"{path}: {error}", remedy) from None
    return {name: text.strip() for name, text in found.items()}


def _study_of(results: RunResults) -> study.Study:
    """Return the study of a run. Raise InputError for a run of `fscost compare`, which has none."""
    name = results.manifest.request.get("study")
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{results.folder} is not the run of a study",
            f"`fscost show {shlex.quote(str(results.folder))}` prints its tables",
        )
    return study.load(name)


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
    elif outputs.is_brief:
        for line in study_answers(report):
            print(wrapped(line))
    else:
        output.show(report, sys.stdout, is_by_disk=by_disk)


@dataclass(frozen=True)
class _Asked:
    """Parameters that define the cells. They are the same when a run is resumed."""

    scale: str
    options: Mapping[str, str]
    seed: int
    source: Path | None
    kernels: Sequence[str]
    modules: Sequence[str]
    disks: Sequence[str]
    profiles: Sequence[str]

    def words(self) -> list[str]:
        """Return the parameters as command-line options, without the seed."""
        named = (
            ("--set", [f"{key}={value}" for key, value in self.options.items()]),
            ("--source", [str(self.source)] if self.source else []),
            ("--kernel", self.kernels),
            ("--modules", self.modules),
            ("--disk", self.disks),
            ("--profile", self.profiles),
        )
        given = [word for option, values in named for value in values for word in (option, value)]
        return ["--scale", self.scale, *given]


def _earlier(results: RunResults, name: str) -> _Asked:
    """Return the validated parameters of a run that is resumed. They come from a file."""
    request = results.manifest.request
    scale, options, source = request.get("scale"), request.get("set"), request.get("source", "")
    lists = [request.get(key, []) for key in ("kernel", "modules", "disk", "profile")]
    if (
        request.get("study") != name
        or not isinstance(scale, str)
        or not isinstance(source, str)
        or not isinstance(options, dict)
        or not all(isinstance(each, list) for each in lists)
        or not all(isinstance(text, str) for each in [options.values(), *lists] for text in each)
    ):
        raise InputError(
            f"{results.folder} is not a run of the study {name}",
            "name the study and the folder of the run that was interrupted",
        )
    own = Path(source) if source else None
    return _Asked(scale, options, results.manifest.seed, own, *lists)


def _refuse_others(context: typer.Context, folder: Path) -> None:
    """Refuse options that would change cells on resume. The number of repetitions may change."""
    for name in ("scale", "set", "source", "seed", "kernel", "modules", "disk", "profile"):
        if str(context.get_parameter_source(name)).endswith("COMMANDLINE"):
            raise InputError(
                f"--resume {folder} keeps the run's original options; --{name} cannot be changed",
                "leave the option out, or start a new run",
            )
