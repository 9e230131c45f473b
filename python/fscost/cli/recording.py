"""`fscost recording info|verify|export|strip|fetch|import`: inspect or convert a recording."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fscost import capture
from fscost.cli import shared
from fscost.cli.help import Command
from fscost.cli.kept import every_kept
from fscost.cli.usage import group, run_path, some_path
from fscost.errors import FscostError, InputError
from fscost.report import document
from fscost.view.grid import plain
from fscost.view.units import human_bytes, slug

if TYPE_CHECKING:
    from fscost.files.stores import Read

app = group("Inspect, check, export, strip, fetch and import recordings.")

Source = Annotated[
    Path,
    typer.Argument(
        parser=some_path,
        metavar="RECORDING",
        help="A file that a run kept: cells/…/recording.fscost.",
    ),
]


class Form(StrEnum):
    """Format of an export."""

    IMAGE = "image"
    PARQUET = "parquet"
    DM_LOG_WRITES = "dm-log-writes"


class Names(StrEnum):
    """Treatment of names in a stripped recording."""

    REPLACE = "replace"
    EXTENSIONS = "extensions"
    KEEP = "keep"


class DamagedError(FscostError):
    """Error for a damaged recording: printed on standard output, signalled by the exit code."""

    exit_code = 1


@app.command(cls=Command)
def info(recording: Source, json_: shared.Json = False) -> None:
    """Show the disks, how the recording ended, and requests and bytes between marks."""
    facts = capture.info(recording)
    intervals = capture.intervals(recording)
    if json_:
        table = [
            {"name": i.name, "begin_ns": i.begin_ns, "end_ns": i.end_ns, "disks": dict(i.disks)}
            for i in intervals
        ]
        sys.stdout.write(document.text("recording-info", {**facts, "intervals": table}))
        return
    # Recordings of emulated guests and of dm-log-writes have no date, because their times are not
    # on the clock of the system that used the disk.
    began = (
        f"began {datetime.fromtimestamp(facts['begin_unix_ns'] / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
        if facts["begin_unix_ns"]
        else "start time unknown"
    )
    packed = (
        f"{human_bytes(facts['content_bytes'])} of content stored in"
        f" {human_bytes(facts['content_stored_bytes'])}"
    )
    print(
        plain(
            f"{recording}: {facts['end']}; {facts['events']} events in {facts['frames']} frames,"
            f" {packed}"
        )
    )
    print(plain(f"{began}, lasted {facts['last_ns'] / 1e9:.3f} s"))
    if facts["stripped"] != "no":
        print(plain(f"stripped of the contents of files ({facts['stripped']})"))
    for disk in facts["disks"]:
        sectors = (
            f"sectors of {disk['logical_block_bytes']} (logical), {disk['physical_block_bytes']}"
            " (physical)"
        )
        print(plain(f"disk {disk['name']}: {human_bytes(disk['size_bytes'])}, {sectors}"))
    _print_intervals(intervals)


def _print_intervals(intervals: Sequence[capture.RecordedInterval]) -> None:
    bytes_columns = ("written", "zeroed", "discarded or zeroed", "read")
    rows = [("interval", "disk", "begins, s", *bytes_columns, "flushes")]
    rows += [
        (
            interval.name,
            disk,
            f"{interval.begin_ns / 1e9:.3f}",
            human_bytes(totals["write_bytes"]),
            human_bytes(totals["zero_bytes"]),
            human_bytes(totals["punch_bytes"] + totals["discard_bytes"]),
            human_bytes(totals["read_bytes"]),
            str(totals["flushes"]),
        )
        for interval in intervals
        for disk, totals in interval.disks.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, disk, *numbers in rows:
        cells = [name.ljust(widths[0]), disk.ljust(widths[1])]
        cells += [text.rjust(width) for text, width in zip(numbers, widths[2:], strict=True)]
        print(plain("  ".join(cells).rstrip()))


@app.command(cls=Command)
def verify(recording: Source, json_: shared.Json = False) -> None:
    """Check every byte of a recording; exit 1 if it is damaged."""
    report: Mapping[str, Any] = capture.verify(recording)
    if json_:
        sys.stdout.write(document.text("recording-verify", report))
    else:
        print(plain(f"{recording}: {report['end']}; {report['events']} events are intact"))
        for line in report["damaged"]:
            print(plain(f"  {line}"))
    if not report["whole"]:
        raise DamagedError(
            f"{recording} is incomplete or damaged",
            "the part before the damage can still be exported",
        )


@app.command(cls=Command)
def export(
    recording: Source,
    out: Annotated[
        Path,
        typer.Argument(parser=some_path, metavar="OUT", help="The file to make; must not exist."),
    ],
    form: Annotated[
        Form,
        typer.Option(
            "--as", help="A plain disk image, a table of requests, or a dm-log-writes log."
        ),
    ],
    disk: Annotated[str, typer.Option(help="Disk to export.")] = "main",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT",
            help="Instant of the image: a mark's name, or seconds since the beginning.",
        ),
    ] = None,
) -> None:
    """Export a disk image, a Parquet table or a dm-log-writes log."""
    if at is not None and form is not Form.IMAGE:
        raise InputError("--at requires --as image", "leave it out")
    if form is Form.PARQUET:
        print(plain(f"{out}: {capture.write_requests(recording, out)[0]} requests"))
    elif form is Form.DM_LOG_WRITES:
        print(
            plain(
                f"{out}: {capture.export_dm_log_writes(recording, disk, out, _announce(out))}"
                " entries"
            )
        )
    else:
        capture.export_image(recording, disk, out, at, _announce(out))
        print(plain(f"{out}: {human_bytes(out.stat().st_size)}"))


def _announce(out: Path) -> capture.Announce:
    return lambda size_bytes: print(
        plain(f"{out}: up to {human_bytes(size_bytes)}"), file=sys.stderr, flush=True
    )


@app.command(cls=Command)
def strip(
    recording: Annotated[
        Path,
        typer.Argument(
            parser=run_path, metavar="RECORDING|RUN", help="A recording, or a run's folder."
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            parser=some_path,
            metavar="OUT",
            help="The recording to make, or the folder for a run's; must not exist.",
        ),
    ],
    names: Annotated[
        Names, typer.Option(help="Replace all names, all but short extensions, or none.")
    ] = Names.REPLACE,
    trust: shared.TrustRun = False,
) -> None:
    """Write a copy without the contents of files, for sharing (docs/sharing.md).

    Of a run, each recording is copied, but not its other files: they name your commands, folders
    and machine. The lengths of names, and the names of extended attributes, stay.
    """
    if not recording.is_dir():
        _strip(recording, out, names)
        return
    kept = every_kept(recording, (), trust=trust)
    try:
        out.mkdir()
    except FileExistsError:
        raise InputError(f"{out} exists", "name a folder that does not exist yet") from None
    for each in kept:
        _strip(each.recording, out / f"{slug(each.profile)}-{each.repetition}.fscost", names)


def _strip(recording: Path, out: Path, names: Names) -> None:
    size = capture.strip(recording, out, names, _announce(out))
    facts = capture.info(out)
    print(plain(f"{out}: {human_bytes(size)}, without the contents of files ({facts['stripped']})"))
    if facts["end"] != "finished":
        print("  it ends early, as the original does")


@app.command(cls=Command)
def fetch(
    run: Annotated[
        Path, typer.Argument(parser=run_path, metavar="RUN", help="The folder of a run.")
    ],
    store: Annotated[
        str,
        typer.Option("--from", metavar="URL", help="The store, as `fscost explain RUN` names it."),
    ],
    on_cluster: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto",
            help="Read each recording on the machine that made it: the store is a folder of each.",
        ),
    ] = None,
    profile: shared.OnlyProfiles = None,
    trust: shared.TrustRun = False,
) -> None:
    """Fetch the recordings that a run on a cluster put into a store (--recordings-to)."""
    from fscost.files import stores
    from fscost.results import kept_recording, load, stored

    manifest = load(run, trust=trust).manifest
    found = [(cell, place) for cell in manifest.cells if (place := stored(cell)) is not None]
    if unknown := set(profile or ()) - {cell.profile for cell, _ in found}:
        raise InputError(
            f"{run}: no recording of {min(unknown)!r} is in a store", "name another --profile"
        )
    if not found:
        raise InputError(f"{run}: no recording is in a store", "there is nothing to fetch")
    with _reader(on_cluster) as reader:
        for cell, place in found:
            path = run / cell.recording
            if (profile and cell.profile not in profile) or kept_recording(run, cell) is not None:
                continue
            if not path.parent.resolve().is_relative_to(run.resolve()):
                raise InputError(f"{path} leads out of {run}", "do not use this run: it was edited")
            read = reader(cell.machine)
            stores.fetch(store, place.name, path, place.size_bytes, place.sha256, read)
            print(plain(f"{path}: {human_bytes(place.size_bytes)}"))


@contextmanager
def _reader(on_cluster: str | None) -> Iterator[Callable[[str], "Read"]]:
    """Return the reader of the store of a machine: this machine's, or that of a cluster's."""
    from fscost.files import stores

    if on_cluster is None:
        yield lambda _: stores.read
        return
    from fscost.run.executor.ray import RayCluster

    cluster = RayCluster(on_cluster, _say)
    try:
        yield lambda machine: partial(cluster.read_stored, machine)
    finally:
        cluster.close()


def _say(line: str) -> None:
    print(plain(line), file=sys.stderr)


@app.command("import", cls=Command)
def import_(
    log: Annotated[
        Path,
        typer.Argument(
            parser=some_path, metavar="LOG", help="A log of the kernel's dm-log-writes target."
        ),
    ],
    recording: Annotated[
        Path,
        typer.Argument(
            parser=some_path, metavar="RECORDING", help="The recording to make; must not exist."
        ),
    ],
) -> None:
    """Import a dm-log-writes log as a recording."""
    print(plain(f"{recording}: {capture.import_dm_log_writes(log, recording)} entries"))
