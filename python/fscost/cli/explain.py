"""`fscost explain`: structure, cause and file of each written byte of a recording."""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fscost import capture
from fscost.cli import early, shared
from fscost.cli.declare import option, with_fields
from fscost.cli.kept import Kept, first_kept
from fscost.cli.usage import run_path
from fscost.errors import InputError
from fscost.view.grid import plain

if TYPE_CHECKING:
    from fscost import analyze
    from fscost.analyze import Explanation
    from fscost.analyze.traced import Traced
    from fscost.wear import Device, GroupWear

# Modules that read tables are imported in the functions that need them, while a thread explains the
# recording.
By = Literal["structure", "cause", "file", "directory", "extension", "phase", "time", "transaction"]
"""The values of `analyze.By`."""
LINES = 20
AROUND = 6
JSON_GROUPS = 10_000
"""Maximum groups in JSON. A recording may have millions of files, and a group takes 1 KB."""


@dataclass(frozen=True)
class Asked:
    """Options of `fscost explain`, as given."""

    sources: Annotated[
        list[Path],
        typer.Argument(
            parser=run_path,
            metavar="RECORDING|RUN|TRACE…",
            help=(
                "A recording, or a run's folder (the first recording of each profile); repeatable."
                " Or a block trace (docs/traces.md)."
            ),
        ),
    ]
    by: By | None = option(help="Group by this. (default: structure)", show_default=False)
    phase: shared.Repeated = option(metavar="NAME", help="Only this phase; repeatable.")
    is_all: bool = option(
        "--all",
        default=False,
        help="Include phases that `fscost compare` does not count: mkfs, mount, preparation.",
    )
    profile: shared.Repeated = option(
        metavar="NAME", help="Only this profile of a run; repeatable. (default: each)"
    )
    top: int | None = option(
        metavar="N",
        min=1,
        help=(
            "Number of groups to show; the rest share one row."
            f" (default: {LINES}; with --json {JSON_GROUPS:,})"
        ),
        show_default=False,
    )
    diff: str | None = option(
        metavar="PROFILE [OTHER]",
        help=(
            "Explain why OTHER wrote more or less than this profile of a run, or why this profile"
            " did in the second of two runs."
        ),
    )
    at: str | None = option(
        metavar="INSTANT",
        help=(
            "Show the disks' state at a mark (`fscost recording info` lists them), or this many"
            " seconds after the start."
        ),
    )
    around: int | None = option(
        metavar="N",
        min=0,
        max=1000,
        help=f"With --at: number of requests before and after it. (default: {AROUND})",
    )
    parquet: Path | None = option(
        metavar="FILE",
        help="Write a Parquet table, one row for each written extent, to this new file.",
    )
    is_fsyncs: bool = option(
        "--fsyncs",
        default=False,
        help="Show the fsync calls instead, and the commits that each forced.",
    )
    is_charged: bool = option(
        "--charge-commits",
        default=False,
        help=(
            "With --by file, directory or extension: charge each commit to the file whose fsync"
            " forced it."
        ),
    )
    trust: shared.TrustRun = False
    by_disk: bool = option("--by-disk", default=False, help="Add a table for each disk.")
    ssd: str | None = option(
        metavar="MODEL|FILE.toml",
        help="Add NAND bytes and the lifetime of this device (see `fscost devices`).",
    )
    form: shared.FormatName | None = option(
        "--format",
        help="Format of another tool's trace. (default: detected from the content)",
        show_default=False,
    )
    json: shared.Json = False

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.phase and self.is_all:
            raise InputError("--phase and --all contradict each other", "leave one out")
        if self.parquet is not None and os.path.lexists(self.parquet):
            raise InputError(f"{self.parquet} exists", "name a file that does not exist yet")
        if self.at is None and self.around is not None:
            raise InputError("--around requires --at", "leave it out, or give --at an instant")
        is_written = self.parquet is not None
        if self.is_charged and self.by not in ("file", "directory", "extension"):
            raise InputError(
                "--charge-commits charges commits to files", "add --by file, directory or extension"
            )
        if self.is_fsyncs and (
            self.by or self.at or self.diff or self.ssd or self.by_disk or is_written
        ):
            raise InputError(
                "--fsyncs shows calls and excludes --by, --at, --diff, --ssd, --by-disk and"
                " --parquet",
                "drop either --fsyncs or these options",
            )
        if self.is_charged and (self.diff or self.ssd):
            raise InputError(
                "--charge-commits cannot be combined with --diff or --ssd", "drop one of them"
            )
        if self.diff is not None:
            given = self.at is not None or self.ssd is not None
            if given or self.profile or self.by_disk or is_written or len(self.sources) != 2:
                raise InputError(
                    "--diff compares two profiles of one run, or one profile of two runs",
                    "give RUN --diff PROFILE OTHER, or RUN RUN --diff PROFILE, without --profile,"
                    " --at, --by-disk, --parquet and --ssd",
                )
        elif self.at is not None:
            is_grouped = self.by is not None or self.top is not None
            if self.phase or self.is_all or self.by_disk or is_written or is_grouped:
                raise InputError(
                    "--at shows one instant and excludes --phase, --all, --by, --by-disk, --top and"
                    " --parquet",
                    "drop either --at or these options",
                )
            if self.ssd is not None:
                raise InputError("--at and --ssd cannot be combined", "drop --ssd")

    def refuse_for_trace(self, source: Path) -> None:
        """Refuse options that need the contents of a recording."""
        chosen = {
            "--by": self.by,
            "--phase": self.phase,
            "--all": self.is_all,
            "--profile": self.profile,
            "--parquet": self.parquet,
            "--at": self.at,
            "--fsyncs": self.is_fsyncs,
            "--ssd": self.ssd,
            "--by-disk": self.by_disk,
        }
        for name, given in chosen.items():
            if given:
                raise InputError(f"{name} needs a recording, and {source} is a trace", "drop it")

    def summed_by(self) -> By:
        """Grouping of the table."""
        return self.by or "structure"

    def phases_of(self, whole: "Explanation", kept: Kept) -> list[str]:
        """Phases to report: those given, else all, else those that the run counts."""
        measured = [name for name in whole.phases if name in kept.measured] or whole.measured
        return list(self.phase or (whole.phases if self.is_all else measured))


@with_fields
def explain(asked: Asked) -> None:
    """Attribute each written byte to its structure, cause and file."""
    asked.check()
    if asked.diff is not None:
        _tell_difference(asked, asked.diff)
        return
    if (trace := _trace(asked)) is not None:
        _tell_trace(asked, trace)
        return
    sections = {
        source: first_kept(source, asked.profile or (), trust=asked.trust)
        for source in dict.fromkeys(asked.sources)
    }
    kept = [each for several in sections.values() for each in several]
    if asked.at is not None:
        _tell_instant(asked, kept, asked.at)
        return
    if asked.parquet is not None:
        _only(kept, "--parquet")
    _tell_each(asked, sections)


def _trace(asked: Asked) -> "Traced | None":
    """Return the requests of another tool's trace, if the only source is one."""
    [source, *others] = asked.sources
    if asked.form is None and (others or source.is_dir() or capture.is_recording(source)):
        return None
    if others:
        raise InputError("--format is about one trace", "explain traces one by one")
    from fscost.analyze.traced import traced

    found = traced(source, asked.form)
    if found is not None:
        asked.refuse_for_trace(source)
    return found


def _tell_trace(asked: Asked, found: "Traced") -> None:
    from fscost.cli.output import traced as output

    output.emit(asked.sources[0], found, asked.top or LINES, is_json=asked.json)


def _tell_each(asked: Asked, sections: Mapping[Path, Sequence[Kept]]) -> None:
    """Explain the recordings one after the other."""
    device = None if asked.ssd is None else _device(asked.ssd, asked.summed_by())
    rate: float | None = None
    objects: dict[Path, list[dict[str, object]]] = {source: [] for source in sections}
    ends: list[tuple[Path, str]] = []
    is_first = True
    for source, each in ((source, each) for source, all_ in sections.items() for each in all_):
        begun = early.begun(each.recording) or capture.Explaining(each.recording)
        if not asked.json and not begun.is_started:
            if not is_first:
                print()
            is_alone = len(asked.sources) == 1 or not each.profile
            print(plain(each.title if is_alone else f"{source}: {each.title}"), flush=True)
        is_first = False
        begun.start()
        _import_quickly()
        found = _explained(asked, each, begun, device, rate)
        ends.append((each.recording, found.report.explanation.end))
        rate = rate if found.worn is None else found.worn.runs_per_day
        if asked.json:
            objects[source].append({**each.json(), **found.json()})
        else:
            _print(asked, found)
    if asked.json:
        _print_json(objects, is_one=len(asked.sources) == 1)
    _refuse_damage(ends)


def _refuse_damage(ends: Sequence[tuple[Path, str]]) -> None:
    from fscost.cli.output.explained import refuse_damage

    refuse_damage(ends)


@dataclass(frozen=True)
class _Explained:
    """Reports of one recording: of all disks, and of each disk if asked for."""

    report: "analyze.Report"
    disks: "Mapping[str, analyze.Report] | None"
    worn: "GroupWear | None"
    worn_disks: "Mapping[str, GroupWear]"
    parquet_rows: int | None

    def json(self) -> dict[str, object]:
        """Fields of the recording in JSON output."""
        from fscost.cli.output import explained

        told = explained.json(self.report, self.worn)
        if self.disks is not None:
            told["disks"] = {
                disk: explained.json(report, self.worn_disks.get(disk))
                for disk, report in self.disks.items()
            }
        return told


def _explained(
    asked: Asked,
    kept: Kept,
    begun: capture.Explaining,
    device: "Device | None",
    rate: float | None,
) -> _Explained:
    from fscost import analyze

    whole = analyze.explain(kept.recording, begun)
    phases = asked.phases_of(whole, kept)
    limit = asked.top or (JSON_GROUPS if asked.json else LINES)
    by = analyze.By(asked.summed_by())
    with _writing(whole, asked.parquet) as written:
        report = analyze.report(
            whole,
            phases,
            by,
            limit,
            has_fsyncs=asked.is_fsyncs,
            charges_commits=asked.is_charged,
        )
        disks = None
        if asked.by_disk:
            disks = {
                disk: analyze.report(
                    whole.on_disk(disk), phases, by, limit, charges_commits=asked.is_charged
                )
                for disk in whole.families
            }
        rows = None if written is None else written()
    worn, worn_disks = (None, {}) if device is None else _worn(begun, phases, device, by, rate)
    return _Explained(report, disks, worn, worn_disks, rows)


def _print(asked: Asked, found: _Explained) -> None:
    from fscost.cli.output import explained
    from fscost.report.width import given_columns

    columns = given_columns(sys.stdout)
    if found.report.fsyncs is not None:
        from fscost.report.terminal import print_parts
        from fscost.view.fsyncs import fsyncs_view

        told, end = found.report, found.report.explanation.end
        shown = fsyncs_view(found.report.fsyncs, told.write_bytes, asked.top or LINES, end)
        print_parts(*shown, sys.stdout)
        return
    for line in explained.lines(found.report, columns, found.worn):
        print(line)
    for disk, report in (found.disks or {}).items():
        print()
        for line in explained.disk_lines(report, disk, columns, found.worn_disks.get(disk)):
            print(line)
    if found.parquet_rows is not None:
        print(plain(f"\n{asked.parquet}: {found.parquet_rows:,} rows, of all phases"))


def _print_json(objects: Mapping[Path, list[dict[str, object]]], *, is_one: bool) -> None:
    """Print the JSON object of one recording, of one run, or of several sources."""
    from fscost.report import document

    found_in = [
        {"run": str(source), "recordings": each} if source.is_dir() else each[0]
        for source, each in objects.items()
    ]
    value = found_in[0] if is_one else {"sources": found_in}
    sys.stdout.write(document.text("explain", value))


def _device(ssd: str, by: By) -> "Device":
    """Return the device of --ssd, after a check that wear can be charged to such groups."""
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
    """Return the wear of all disks, and of each. Without a rate, runs are back to back."""
    from fscost import wear

    sources = wear.sources(begun.recording, is_explained=True, measured=phases, begun=begun)
    disks = wear.replayed_disks(sources, device, by)
    rate = rate or next(iter(disks.values())).runs_per_day
    of_each = {name: wear.grouped({name: disk}, device, rate) for name, disk in disks.items()}
    return wear.grouped(disks, device, rate), of_each


def _tell_difference(asked: Asked, profile: str) -> None:
    _import_quickly()
    from fscost.analyze import By
    from fscost.report import document
    from fscost.report.terminal import print_parts
    from fscost.view.difference import difference, names

    sides = _sides(asked, profile)
    of_runs = sides[0][0] == sides[1][0]
    kept = [first_kept(source, [name], trust=asked.trust)[0] for name, source in sides]
    first, second = (_all_groups(asked, each) for each in kept)
    ends = [first.explanation.end, second.explanation.end]
    one, other = names([each for _, each in sides]) if of_runs else (name for name, _ in sides)
    default = (By.CAUSE, By.STRUCTURE, By.FILE) if of_runs else (By.STRUCTURE,)
    bys = default if asked.by is None else (By(asked.by),)
    top = asked.top or (JSON_GROUPS if asked.json else LINES // len(bys))
    found = difference(one, first, other, second, bys, top)
    title = f"{profile}: {found.title}" if of_runs else found.title
    if asked.json:
        value = {
            "title": title,
            "first_end": ends[0],
            "second_end": ends[1],
            "groups": found.tables[(By.STRUCTURE if By.STRUCTURE in bys else bys[0]).value],
            "tables": found.tables,
            "findings": found.findings,
        }
        sys.stdout.write(document.text("explain-diff", value))
    else:
        findings = [f"- {finding}" for finding in found.findings]
        print_parts(title, [*found.notes, *found.grids, *findings], sys.stdout)
    _refuse_damage([(each.recording, end) for each, end in zip(kept, ends, strict=True)])


def _sides(asked: Asked, profile: str) -> list[tuple[str, Path]]:
    """Return the profile and the run of both sides. The other profile follows `--diff PROFILE`, so
    it is parsed like a run."""
    from fscost.results import load

    runs = [each for each in asked.sources if each.exists()]
    if len(runs) != 1:
        return [(profile, each) for each in asked.sources]
    [run], [other] = runs, [str(each) for each in asked.sources if each != runs[0]]
    known = load(run, trust=asked.trust).manifest.profile_names if run.is_dir() else [other]
    if other not in known:
        raise InputError(
            f"{other} is neither a run nor a profile of {run}",
            f"name a run's folder, or one of {', '.join(known)}",
        )
    return [(profile, run), (other, run)]


def _all_groups(asked: Asked, kept: Kept) -> "analyze.Report":
    """Return a report of all groups of the phases."""
    from fscost import analyze

    whole = analyze.explain(kept.recording)
    phases = asked.phases_of(whole, kept)
    return analyze.report(whole, phases, analyze.By(asked.summed_by()), None)


def _import_quickly() -> None:
    """Avoid work that delays the first output. Importing numpy starts a thread for each further
    core, which spins at first and is never used. Imported objects stay alive, so garbage collection
    of them wastes time."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()


def _writing(
    whole: "Explanation", parquet: Path | None
) -> AbstractContextManager[Callable[[], int] | None]:
    if parquet is None:
        return nullcontext()
    from fscost.analyze.writing import writing

    return writing(whole, parquet)


def _tell_instant(asked: Asked, kept: list[Kept], at: str) -> None:
    from fscost import analyze
    from fscost.cli.output import instant as output
    from fscost.report import document
    from fscost.report.width import given_columns

    only = _only(kept, "--at")
    around = AROUND if asked.around is None else asked.around
    whole = analyze.explain(only.recording)
    instant = analyze.at(only.recording, whole, at, around)
    if asked.json:
        value = {**only.json(), "end": whole.end, **instant.json()}
        sys.stdout.write(document.text("explain-at", value))
    else:
        for line in output.lines(instant, only.title, given_columns(sys.stdout), whole.end):
            print(line)
    _refuse_damage([(only.recording, whole.end)])


def _only(kept: list[Kept], option: str) -> Kept:
    if len(kept) > 1:
        names = ", ".join(dict.fromkeys(each.profile for each in kept if each.profile))
        remedy = f"choose one with --profile: {names}" if names else "name one recording"
        raise InputError(
            f"{option} needs a single recording, but there are {len(kept)} here", remedy
        )
    return kept[0]
