"""`fscost explain`: what each written byte of a recording was, why, and whose."""

import atexit
import gc
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fscost import capture
from fscost.cli.kept import Kept, first_kept
from fscost.cli.usage import run_path
from fscost.errors import InputError
from fscost.view.grid import plain

if TYPE_CHECKING:
    from fscost import analyze
    from fscost.analyze import Explanation
    from fscost.wear import Device, GroupWear

# What looks at tables is imported in the functions that need it: the recording is being explained
# meanwhile.
By = Literal["structure", "cause", "file", "directory", "extension", "phase", "time", "transaction"]
"""The values of `analyze.By`."""
LINES = 20
AROUND = 6
JSON_GROUPS = 10_000
"""A recording may have millions of files, and each group is a kilobyte."""


def explain(
    sources: Annotated[
        list[Path],
        typer.Argument(
            parser=run_path,
            metavar="RECORDING|RUN…",
            help="A recording, or a run's folder (all recordings that it kept); repeatable.",
        ),
    ],
    by: Annotated[
        By | None, typer.Option(help="What to sum by. (default: structure)", show_default=False)
    ] = None,
    phase: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this phase; repeatable.")
    ] = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Include phases that `fscost compare` does not count: mkfs, mount, preparation.",
        ),
    ] = False,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this profile of a run; repeatable. (default: each)"
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=f"Groups shown; the rest in one. (default: {LINES}; with --json {JSON_GROUPS:,})",
            show_default=False,
        ),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="PROFILE OTHER",
            help="Compare two profiles of a run: what the second wrote more or less, and of what.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT",
            help="State of the disks at a mark, or at a number of seconds after the beginning.",
        ),
    ] = None,
    around: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=1000,
            help=f"With --at: number of requests before and after it. (default: {AROUND})",
        ),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the table, a row for each written extent; must not exist."
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Use a run's folder that another user owns or can write to."),
    ] = False,
    by_disk: Annotated[
        bool, typer.Option("--by-disk", help="Add the table of each disk alone.")
    ] = False,
    ssd: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|FILE.toml",
            help="Add NAND bytes and the life of this device (`fscost devices`).",
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what each written byte was: structure, cause, file."""
    if phase and all_:
        raise InputError("--phase and --all contradict each other", "leave one out")
    if parquet is not None and os.path.lexists(parquet):
        raise InputError(f"{parquet} exists", "name a file that does not")
    if at is None and around is not None:
        raise InputError("--around goes with --at", "leave it out, or give --at an instant")
    if diff is not None:
        others = (profile, at, by_disk or None, parquet, ssd)
        if any(each is not None for each in others) or len(sources) > 1:
            raise InputError(
                "--diff compares two profiles of one run",
                "drop --profile, --at, --by-disk, --parquet and --ssd, and name one run",
            )
        of_both = [first_kept(sources[0], [name], trust=trust)[0] for name in diff]
        reports = [_report(each, phase, by, is_all=all_) for each in of_both]
        _tell_difference(diff, reports, top or LINES, is_json=json_)
        return
    sections = [
        (source, first_kept(source, profile or [], trust=trust))
        for source in dict.fromkeys(sources)
    ]
    kept = [each for _, several in sections for each in several]
    if at is not None:
        if phase or all_ or by_disk or parquet is not None or by is not None or top is not None:
            raise InputError(
                "--at shows one instant; --phase, --all, --by, --by-disk, --top and --parquet all",
                "drop --at, or the others",
            )
        if ssd is not None:
            raise InputError("--at and --ssd cannot be combined", "drop --ssd")
        _tell_instant(kept, at, AROUND if around is None else around, json_)
        return
    if parquet is not None:
        _only(kept, "--parquet")
    device = None if ssd is None else _device(ssd, by or "structure")
    rate: float | None = None
    objects: dict[Path, list[dict[str, object]]] = {source: [] for source, _ in sections}
    damaged: list[str] = []
    for number, (source, each) in enumerate(
        (source, each) for source, several in sections for each in several
    ):
        begun = capture.Explaining(each.recording)
        if not json_:
            if number:
                print()
            print(
                plain(
                    each.title
                    if len(sources) == 1 or not each.profile
                    else f"{source}: {each.title}"
                ),
                flush=True,
            )
        begun.start()
        _import_quickly()
        from fscost import analyze
        from fscost.cli.output import explained
        from fscost.report.width import given_columns

        whole = analyze.explain(each.recording, begun)
        if whole.end.startswith("damaged"):
            damaged.append(f"{each.recording}: {whole.end}")
        measured = [name for name in whole.phases if name in each.measured] or whole.measured
        phases, limit = (
            list(phase or (whole.phases if all_ else measured)),
            top or (JSON_GROUPS if json_ else LINES),
        )
        summed_by = analyze.By(by or "structure")
        with _writing(whole, parquet) as written:
            report = analyze.report(whole, phases, summed_by, limit)
            disks = whole.families if by_disk else {}
            of_disks = {
                disk: analyze.report(whole.on_disk(disk), phases, summed_by, limit)
                for disk in disks
            }
            rows = None if written is None else written()
        worn = None
        worn_disks: dict[str, GroupWear] = {}
        if device is not None:
            worn, worn_disks = _worn(begun, phases, device, summed_by, rate)
            rate = worn.runs_per_day
        if json_:
            told = explained.json(report, worn)
            if by_disk:
                told["disks"] = {
                    disk: explained.json(found, worn_disks.get(disk))
                    for disk, found in of_disks.items()
                }
            objects[source].append({**each.json(), **told})
            continue
        columns = given_columns(sys.stdout)
        for line in explained.lines(report, columns, worn):
            print(line)
        for disk, found in of_disks.items():
            print()
            for line in explained.disk_lines(found, disk, columns, worn_disks.get(disk)):
                print(line)
        if rows is not None:
            print(plain(f"\n{parquet}: {rows:,} rows, of all phases"))
    if json_:
        found_in = [
            {"run": str(source), "recordings": each} if source.is_dir() else each[0]
            for source, each in objects.items()
        ]
        value = found_in[0] if len(sources) == 1 else {"sources": found_in}
        from fscost.report import document

        sys.stdout.write(document.text("explain", value))
    if damaged:
        raise InputError("; ".join(damaged), capture.VERIFY)


def _device(ssd: str, by: By) -> "Device":
    """The device of --ssd, after a check that it can be charged to such groups."""
    from fscost import analyze, wear

    wear.grouping(analyze.By(by))
    return wear.find(ssd)


def _worn(
    begun: capture.Explaining,
    phases: list[str],
    device: "Device",
    by: "analyze.By",
    rate: float | None,
) -> "tuple[GroupWear, dict[str, GroupWear]]":
    """Wear of all disks, and of each. Without a rate, the recording runs back to back."""
    from fscost import wear

    sources = wear.sources(begun.recording, is_explained=True, measured=phases, begun=begun)
    disks = wear.replayed_disks(sources, device, by)
    rate = rate or next(iter(disks.values())).runs_per_day
    of_each = {name: wear.grouped({name: disk}, device, rate) for name, disk in disks.items()}
    return wear.grouped(disks, device, rate), of_each


def _report(
    kept: Kept, phase: list[str] | None, by: By | None, *, is_all: bool
) -> "analyze.Report":
    """All groups of the phases that were asked for, or else of those that the run counts."""
    _import_quickly()
    from fscost import analyze

    whole = analyze.explain(kept.recording)
    measured = [name for name in whole.phases if name in kept.measured] or whole.measured
    phases = phase or (whole.phases if is_all else measured)
    return analyze.report(whole, list(phases), analyze.By(by or "structure"), None)


def _tell_difference(
    names: tuple[str, str], reports: "list[analyze.Report]", top: int, *, is_json: bool
) -> None:
    from fscost.report.terminal import print_parts
    from fscost.view.difference import difference

    found = difference(names[0], reports[0], names[1], reports[1], top)
    if is_json:
        value = {"title": found.title, "groups": found.rows, "findings": found.findings}
        from fscost.report import document

        sys.stdout.write(document.text("explain-diff", value))
        return
    findings = [f"- {finding}" for finding in found.findings]
    print_parts(found.title, [found.grid, *findings], sys.stdout)


def _import_quickly() -> None:
    """Importing numpy starts a thread for each further core, which spins at first and is never asked
    for anything. What imports make stays, so that looking for garbage among it takes time for
    nothing, at the end of the process too."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    atexit.register(gc.freeze)


def _writing(
    whole: "Explanation", parquet: Path | None
) -> AbstractContextManager[Callable[[], int] | None]:
    if parquet is None:
        return nullcontext()
    from fscost.analyze.writing import writing

    return writing(whole, parquet)


def _tell_instant(kept: list[Kept], at: str, around: int, json_: bool) -> None:
    from fscost import analyze
    from fscost.cli.output import instant as output
    from fscost.report import document
    from fscost.report.width import given_columns

    only = _only(kept, "--at")
    instant = analyze.at(only.recording, analyze.explain(only.recording), at, around)
    if json_:
        sys.stdout.write(document.text("explain-at", {**only.json(), **instant.json()}))
        return
    for line in output.lines(instant, only.title, given_columns(sys.stdout)):
        print(line)


def _only(kept: list[Kept], option: str) -> Kept:
    if len(kept) > 1:
        names = ", ".join(dict.fromkeys(each.profile for each in kept if each.profile))
        remedy = f"choose one with --profile: {names}" if names else "name one recording"
        raise InputError(f"{option} is about one recording, and there are {len(kept)} here", remedy)
    return kept[0]
