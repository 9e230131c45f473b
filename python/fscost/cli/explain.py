"""`fscost explain`: what each written byte of a recording was, why, and whose."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fscost import capture
from fscost.cli.output.grid import plain
from fscost.errors import InputError

if TYPE_CHECKING:
    from fscost.results import CellRecord

# What looks at tables is imported in the functions that need it: the recording is being explained meanwhile.
By = Literal["structure", "cause", "file", "directory", "extension", "phase", "time", "transaction"]
"""The values of `analyze.By`."""
LINES = 20
JSON_GROUPS = 10_000
"""A recording may have millions of files, and each group is a kilobyte."""


def explain(
    source: Annotated[
        Path,
        typer.Argument(metavar="RECORDING|RUN", help="A file that a run kept (cells/…/recording.fscost), or the run's folder for all it kept."),
    ],
    by: Annotated[By, typer.Option(help="What to sum by.")] = "structure",
    phase: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this phase; may be given again.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="mkfs and mount too.")] = False,
    profile: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a run: only this profile; may be given again. (default: each)")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help=f"So many groups; the rest in one. (default: {LINES}; with --json {JSON_GROUPS:,})", show_default=False
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="What the disks did and held at a mark, or so many seconds after the beginning.")
    ] = None,
    around: Annotated[int, typer.Option(metavar="N", min=0, max=1000, help="With --at: so many requests before it, and after it.")] = 6,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table, a row for each written extent; must not exist.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Use a run's folder that another user owns or can write to.")] = False,
    by_disk: Annotated[bool, typer.Option("--by-disk", help="Add the table of each disk alone.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what each written byte was: structure, cause, file."""
    if phase and all_:
        raise InputError("--phase and --all contradict each other", "leave one out")
    if parquet is not None and os.path.lexists(parquet):
        raise InputError(f"{parquet} exists", "name a file that does not")
    kept = _kept(source, profile or [], trust=trust)
    if at is not None:
        if phase or all_ or by_disk or parquet is not None:
            raise InputError("--at tells of one instant; --phase, --all, --by-disk and --parquet of all", "leave one out")
        _tell_instant(source, kept, at, around, json_)
        return
    if parquet is not None:
        _only(source, kept, "--parquet")
    objects = []
    for number, each in enumerate(kept):
        begun = capture.Explaining(each.recording)
        if not json_:
            if number:
                print()
            print(plain(each.title), flush=True)
        _without_idle_threads()
        from fscost import analyze
        from fscost.cli.output import explained
        from fscost.cli.output.terminal import given_columns

        whole = analyze.explain(each.recording, begun)
        phases, limit = list(phase or (whole.phases if all_ else whole.measured)), top or (JSON_GROUPS if json_ else LINES)
        report = analyze.report(whole, phases, analyze.By(by), limit)
        disks = whole.families if by_disk else {}
        of_disks = {disk: analyze.report(whole.on_disk(disk), phases, analyze.By(by), limit) for disk in disks}
        rows = None if parquet is None else whole.write_parquet(parquet)
        if json_:
            more = {"disks": {disk: found.json() for disk, found in of_disks.items()}} if by_disk else {}
            objects.append({**each.json(), **report.json(), **more})
            continue
        for line in explained.lines(report, given_columns(sys.stdout)):
            print(line)
        for disk, found in of_disks.items():
            print()
            for line in explained.disk_lines(found, disk, given_columns(sys.stdout)):
                print(line)
        if rows is not None:
            print(plain(f"\n{parquet}: {rows:,} rows, of all phases"))
    if json_:
        print(json.dumps(objects[0] if source.is_file() else {"run": str(source), "recordings": objects}, indent=2))


def _without_idle_threads() -> None:
    """Importing numpy starts a thread for each further core, which spins at first and is never asked for anything."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _tell_instant(source: Path, kept: "list[Kept]", at: str, around: int, json_: bool) -> None:
    from fscost import analyze
    from fscost.cli.output import instant as output
    from fscost.cli.output.terminal import given_columns

    only = _only(source, kept, "--at")
    instant = analyze.at(only.recording, analyze.explain(only.recording), at, around)
    if json_:
        print(json.dumps({**only.json(), **instant.json()}, indent=2))
        return
    for line in output.lines(instant, only.title, given_columns(sys.stdout)):
        print(line)


def _only(source: Path, kept: "list[Kept]", option: str) -> "Kept":
    if len(kept) > 1:
        names = ", ".join(each.profile for each in kept)
        raise InputError(f"{option} is about one recording, and {source} has {len(kept)}", f"choose one with --profile: {names}")
    return kept[0]


@dataclass(frozen=True)
class Kept:
    """A recording, and of which cell of a run it is."""

    recording: Path
    profile: str = ""
    repetition: int = 0
    failed: bool = False

    @property
    def title(self) -> str:
        """How it is called above its table."""
        if not self.profile:
            return str(self.recording)
        return f"{self.profile} (repetition {self.repetition}{', failed' * self.failed})"

    def json(self) -> dict[str, object]:
        """As it is printed."""
        found: dict[str, object] = {"recording": str(self.recording)}
        return {**found, "profile": self.profile, "repetition": self.repetition} if self.profile else found


def _kept(source: Path, profiles: list[str], *, trust: bool) -> list[Kept]:
    """The recording itself, or the first that a run kept of each profile."""
    if not source.is_dir():
        if profiles:
            raise InputError("--profile goes with a run's folder", f"leave it out: {source} is one recording")
        return [Kept(source)]
    from fscost.results import load

    manifest = load(source, trust=trust).manifest
    found: dict[str, Kept] = {}
    # A cell that failed stands for its profile only where no other does.
    for cell in sorted(manifest.cells, key=lambda cell: (cell.status == "failed", cell.repetition)):
        path = _inside(source, cell)
        if path is not None and cell.profile not in found:
            found[cell.profile] = Kept(path, cell.profile, cell.repetition, cell.status == "failed")
    found = {name: found[name] for name in manifest.profile_names if name in found}
    if not found:
        raise InputError(f"{source} has no recordings", "`fscost compare --keep one` keeps one of each profile, `--keep all` all of them")
    if unknown := [name for name in profiles if name not in found]:
        without = " without a recording" if unknown[0] in manifest.profile_names else " unknown to it"
        raise InputError(f"{source}: profile {unknown[0]!r} is{without}", f"those it has recordings of: {', '.join(found)}")
    return [found[name] for name in dict.fromkeys(profiles or found)]


def _inside(folder: Path, cell: "CellRecord") -> Path | None:
    """A manifest may come from anybody: what it names outside of its folder is nobody's recording."""
    path = folder / cell.recording
    return path if cell.recording and path.is_file() and path.resolve().is_relative_to(folder.resolve()) else None
