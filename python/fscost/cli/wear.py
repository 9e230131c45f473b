"""`fscost wear`: wear that recorded writes cause on an SSD, an SD card or an eMMC."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fscost.cli import shared
from fscost.cli.declare import option, with_fields
from fscost.cli.kept import Kept, every_kept
from fscost.cli.usage import some_path
from fscost.errors import InputError
from fscost.quantity import parse_duration_s, parse_size_bytes

if TYPE_CHECKING:
    from fscost.cli.output.members import Loaded
    from fscost.cli.output.wear import Entry
    from fscost.wear import By, Device, Place, Repeat, Shape, Source

ByName = Literal["cause", "structure", "path", "step"]
"""The values of `wear.By`."""
PlaceName = Literal["disk", "footprint"]
"""The values of `wear.Place`."""
RepeatName = Literal["varied", "exact", "roaming"]
"""The values of `wear.Repeat`."""
TOP = 8
_MOST_STEPS = 200


@dataclass(frozen=True)
class Options:
    """Options of `fscost wear`."""

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
    ]
    ssd: Annotated[
        str,
        typer.Option(
            metavar="MODEL|FILE.toml",
            help="A device from `fscost devices`, or a TOML file that describes one.",
        ),
    ]
    by: ByName | None = option(
        help="Charge wear to causes, structures, paths or steps. (default: cause)",
        show_default=False,
    )
    sweep: str | None = option(
        metavar="spare=7..50",
        help=(
            "Repeat for each value of spare (share of NAND) or fill, in percent; 7..50:5 has"
            " steps of 5."
        ),
    )
    fill: float = option(
        default=100.0,
        metavar="PERCENT",
        min=0,
        max=100,
        help="Share of the device that holds data.",
    )
    place: PlaceName = option(
        default="disk",
        help=(
            "Size of the modelled device: that of the recorded disk, or of all addresses written."
        ),
    )
    repeat: RepeatName = option(
        default="varied",
        help=(
            "Repeat the workload at other addresses of the same regions, at exactly the same"
            " addresses, or so that what is written once roams over the disk (docs/wear.md)."
        ),
    )
    runs_per_day: float | None = option(
        metavar="N",
        help=(
            "Runs of the workload per day. (default: back to back, at the speed of the first"
            " profile)"
        ),
    )
    per_day: str | None = option(
        metavar="SIZE",
        help=(
            "Bytes that the host writes per day, such as 40GB; in a run of several profiles, those"
            " of the first."
        ),
        show_default=False,
    )
    now: Path | None = option(
        metavar="FILE|FOLDER",
        parser=some_path,
        help=(
            "Counters of your own device: the output of `smartctl --json --xall`,"
            " /sys/block/mmcblkN (eMMC), or a UFS host's folder in /sys. Adds what is left of its life."
        ),
        show_default=False,
    )
    window: str | None = option(
        metavar="DURATION",
        help=(
            "Duration of a trace's capture, idle time included, such as 24h. (default: from its"
            " first line to its last)"
        ),
        show_default=False,
    )
    disk_size: str | None = option(
        metavar="SIZE",
        help="Size of each disk of a trace, such as 500GB. (default: its highest address)",
        show_default=False,
    )
    profile: shared.OnlyProfiles = None
    format: shared.FormatName | None = option(
        "--format",
        help="Format of a trace. (default: detected from the content)",
        show_default=False,
    )
    disk: str | None = option(
        metavar="NAME", help="Replay only this disk. (default: each disk on a device of its own)"
    )
    array: str | None = option(
        metavar="LEVEL,members=N,…",
        help=(
            "Treat the disk as an md array of --ssd devices: raid5,members=3,chunk=64K"
            " (docs/wear.md)."
        ),
    )
    seed: shared.Seed = 1
    top: int = option(
        default=TOP,
        metavar="N",
        min=1,
        help="Number of rows in the --by table; the rest share one row.",
    )
    trust: shared.TrustRecordings = False
    json: shared.JsonTables = False
    csv: shared.CsvTables = None
    markdown: shared.MarkdownTables = None


@with_fields
def wear(options: Options) -> None:
    """Estimate the wear that recorded writes cause on an SSD, an SD card or an eMMC."""
    from fscost import capture
    from fscost import wear as room
    from fscost.cli.output import wear as output
    from fscost.cli.output.emit import Outputs

    outputs = Outputs(options.json, options.csv, options.markdown)
    outputs.check()
    _refuse_combinations(options)
    source, sweep = options.source, options.sweep
    device, fill = room.find(options.ssd), options.fill / 100
    per_day_bytes = None if options.per_day is None else parse_size_bytes(options.per_day)
    counters = None if options.now is None else room.read_counters(options.now)
    place = room.Place(options.place)
    variants = [("", device, fill)] if sweep is None else _variants(sweep, device, fill)
    models = _Models(variants, place, room.Repeat(options.repeat), options.seed, options.disk)
    charged: room.By | None = None
    loads: Sequence[Loaded] = ()
    is_trace = options.format is not None or not (source.is_dir() or capture.is_recording(source))
    if is_trace:
        if options.by is not None or options.profile or options.array is not None:
            raise InputError(
                "--by, --profile and --array need a recording",
                f"{source} is a trace: drop these options",
            )
        window_s = None if options.window is None else parse_duration_s(options.window)
        disk_bytes = None if options.disk_size is None else parse_size_bytes(options.disk_size)
        entries = models.of_trace(source, options.format, window_s, disk_bytes)
    else:
        if options.window is not None:
            raise InputError("--window needs a trace", f"{source} has times of its own: drop it")
        if options.disk_size is not None:
            raise InputError("--disk-size needs a trace", f"{source} has a size: drop the option")
        kept = every_kept(source, options.profile or [], trust=options.trust)
        if options.array is not None:
            entries, loads = models.of_members(kept, room.parse_array(options.array))
        else:
            charged = room.By(options.by or "cause") if sweep is None else None
            entries = models.of_disks(kept, charged, _program_bytes(source, trust=options.trust))
    report = output.Report(
        str(source),
        device,
        charged,
        entries,
        place,
        runs_per_day=options.runs_per_day,
        top=options.top,
        loads=loads,
        is_trace=is_trace,
        per_day_bytes=per_day_bytes,
        counters=counters,
        has_disk_size=options.disk_size is not None,
    )
    output.emit(report, outputs)


def _refuse_combinations(options: Options) -> None:
    if options.sweep is not None and options.by is not None:
        raise InputError(
            "--by and --sweep cannot be combined",
            "drop one: a sweep prints one row per step and profile",
        )
    if options.array is not None and options.by is not None:
        raise InputError(
            "--by and --array cannot be combined",
            "drop one: fscost does not attribute requests of members",
        )
    if options.per_day is not None and options.runs_per_day is not None:
        raise InputError("--per-day and --runs-per-day cannot be combined", "drop one of them")
    if options.per_day is not None and parse_size_bytes(options.per_day) == 0:
        raise InputError(f"--per-day {options.per_day} is too small", "give a size above 0")
    if options.runs_per_day is not None and options.runs_per_day <= 0:
        raise InputError(
            f"--runs-per-day {options.runs_per_day:g} is too small", "give a number above 0"
        )


@dataclass(frozen=True)
class _Models:
    """Models of the device, and how recordings are replayed on them. `variants`: for
    each step of a sweep, its name, its device, and the share of the device that holds data. `disk`:
    the only one that is replayed."""

    variants: "Sequence[tuple[str, Device, float]]"
    place: "Place"
    repeat: "Repeat"
    seed: int
    disk: str | None

    def of_disks(
        self, kept: Sequence[Kept], by: "By | None", program_bytes: dict[str, int]
    ) -> "list[Entry]":
        """Measure each disk."""
        from fscost import wear as room

        found = []
        charged: set[str] = set()
        for each in kept:
            # Only the first repetition of each profile is explained and charged, because explaining
            # takes longer than everything else.
            of_first = None if each.profile in charged else by
            charged.add(each.profile)
            for source in room.sources(
                each.recording,
                is_explained=of_first is not None,
                measured=sorted(each.measured),
                disk=self.disk,
            ):
                found += self._entries(each, source, of_first, program_bytes.get(each.cell))
        return found

    def of_members(
        self, kept: Sequence[Kept], array: "Shape"
    ) -> "tuple[list[Entry], list[Loaded]]":
        """Measure each member as a separate disk.

        Also return the load of all members, in the first repetition of each profile.
        """
        from fscost import wear as room
        from fscost.cli.output.members import Loaded

        found: list[Entry] = []
        loads: dict[str, Loaded] = {}
        _, device, _ = self.variants[0]
        for each in kept:
            measured = sorted(each.measured)
            sources = room.members(each.recording, array, measured=measured, disk=self.disk)
            for source in sources:
                found += self._entries(each, source)
            if each.profile not in loads:
                load = room.array_load(sources[0], device, self.seed)
                loads[each.profile] = Loaded(each.profile, load, room.has_timing(device))
        return found, list(loads.values())

    def of_trace(
        self, path: Path, form: str | None, window_s: float | None, disk_bytes: int | None
    ) -> "list[Entry]":
        """Measure each disk of a trace."""
        from fscost import wear as room

        _, device, _ = self.variants[0]
        disks = room.trace_sources(
            path, device, form, disk=self.disk, window_s=window_s, disk_bytes=disk_bytes
        )
        return [entry for each in disks for entry in self._entries(Kept(path), each)]

    def _entries(
        self,
        kept: Kept,
        source: "Source",
        by: "By | None" = None,
        program_write_bytes: int | None = None,
    ) -> "list[Entry]":
        """Measure a disk on each variant."""
        from fscost import wear as room
        from fscost.cli.output.wear import Entry

        return [
            Entry(
                kept.profile,
                kept.repetition,
                name,
                device,
                room.measure(
                    source,
                    device,
                    by=by,
                    fill=fill,
                    place=self.place,
                    repeat=self.repeat,
                    seed=self.seed,
                    program_write_bytes=program_write_bytes,
                ),
            )
            for name, device, fill in self.variants
        ]


def _program_bytes(source: Path, *, trust: bool) -> dict[str, int]:
    """Return the bytes that the commands of each cell of a run wrote, by cell."""
    if not source.is_dir():
        return {}
    from fscost.results import TOTAL, load

    rows = load(source, trust=trust).samples.to_pylist()
    chosen = [
        row
        for row in rows
        if row["metric"] == "program_write_bytes" and row["phase"] == TOTAL and not row["disk"]
    ]
    return {row["cell"]: int(row["value"]) for row in chosen}


def _variants(sweep: str, device: "Device", fill: float) -> "list[tuple[str, Device, float]]":
    """Parse a sweep such as `spare=7..50:5`, and return the device with each value, in percent."""
    form = "write it as spare=7..50, fill=20..100 or spare=7..50:1"
    name, _, bounds = sweep.partition("=")
    bounds, _, step_text = bounds.partition(":")
    low_text, dots, high_text = bounds.partition("..")
    if name not in ("spare", "fill") or not dots:
        raise InputError(f"--sweep {sweep!r} is not a range of spare or fill", form)
    try:
        low, high = float(low_text), float(high_text)
        step = float(step_text) if step_text else max((high - low) / 8, 0.01)
    except ValueError:
        raise InputError(f"--sweep {sweep!r} is not a range of spare or fill", form) from None
    most = 95 if name == "spare" else 100
    if not (0 < low <= high <= most and step > 0 and (high - low) / step <= _MOST_STEPS):
        raise InputError(
            f"--sweep {sweep!r} is out of range",
            f"give {name} above 0 and up to {most} percent, in at most {_MOST_STEPS} steps",
        )
    count = int((high - low) / step + 1e-9) + 1
    values = [low + step * number for number in range(count)]
    found = []
    for value in values:
        label, share = f"{name} {value:.10g} %", value / 100
        found.append(
            (label, device, share) if name == "fill" else (label, device.with_spare(share), fill)
        )
    return found
