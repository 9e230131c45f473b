"""Output of wear: for a terminal, as Markdown, CSV and JSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fscost import stats
from fscost.analyze.explain import incomplete
from fscost.cli.output import members
from fscost.cli.output.emit import Outputs
from fscost.cli.output.explained import one_line, percent, refuse_damage
from fscost.cli.output.wear_answer import Answer, Row
from fscost.report import document
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.units import decimal_bytes, human_bytes, human_share, human_years
from fscost.wear import By, Charge, Counters, Device, Place, Wear

_SHADES = " ░▒▓█"
_MAP_COLUMNS = 24
_METRICS = (
    "host_write_bytes",
    "program_write_bytes",
    "nand_write_bytes",
    "device_amplification",
    "exact_amplification",
    "roaming_amplification",
    "stack_amplification",
    "copy_bytes",
    "levelling_bytes",
    "padding_bytes",
    "absorbed_bytes",
    "trim_bytes",
    "flushes",
    "nominal_spare",
    "effective_spare",
    "filled",
    "passes",
)


@dataclass(frozen=True)
class Entry:
    """A disk of one repetition of a profile, on a device. `variant` names the step of a sweep."""

    profile: str
    repetition: int
    variant: str
    device: Device
    wear: Wear


@dataclass(frozen=True)
class Report:
    """Contents of the output of `fscost wear`."""

    source: str
    device: Device
    by: By | None
    entries: Sequence[Entry]
    place: Place
    runs_per_day: float | None
    top: int
    loads: Sequence[members.Loaded] = ()
    is_trace: bool = False
    per_day_bytes: int | None = None
    counters: Counters | None = None
    has_disk_size: bool = False

    @property
    def is_sweep(self) -> bool:
        """True if rows are the steps of a sweep."""
        return any(each.variant for each in self.entries)

    @property
    def rate(self) -> float | None:
        """Runs of the workload per day: as requested, so many that the first profile writes
        `per_day_bytes`, or at the speed of the first profile."""
        if self.per_day_bytes is not None:
            return self.per_day_bytes / self.host_bytes if self.host_bytes else None
        return self.runs_per_day or next((each.wear.runs_per_day for each in self.entries), None)

    @property
    def host_bytes(self) -> float:
        """Bytes that a run of the first profile writes, to all members of an array."""
        if self.loads:
            return self.loads[0].load.array_write_bytes
        return (
            Row("", [each.wear for each in self.groups()[0]]).median(
                lambda wear: wear.host_write_bytes
            )
            or 0
        )

    @property
    def answer(self) -> Answer:
        """The answer above the table."""
        rows = []
        for group in self.groups():
            words = (each for each in (_name(group[0]), group[0].variant) if each)
            rows.append(Row(", ".join(words), [each.wear for each in group]))
        return Answer(self.device, rows, self.rate, self._at(), self.counters)

    def _at(self) -> str:
        """The rate in words."""
        rate = self.rate
        if rate is None:
            return "at an unknown rate"
        if self.per_day_bytes is not None:
            return f"at {decimal_bytes(self.per_day_bytes)} a day"
        a_day = f"{decimal_bytes(rate * self.host_bytes)} a day"
        if self.runs_per_day:
            return f"at {_count(rate)} runs a day ({a_day})"
        return f"back to back ({a_day}; --per-day 40GB gives your own rate)"

    def groups(self) -> list[list[Entry]]:
        """Return the repetitions of each row, that is, of a profile, step of a sweep and disk."""
        found: dict[tuple[str, str, str], list[Entry]] = {}
        for each in self.entries:
            found.setdefault((each.profile, each.variant, each.wear.disk), []).append(each)
        return list(found.values())


def emit(report: Report, outputs: Outputs) -> None:
    """Write the report to each requested destination."""
    outputs.emit_tables(
        _title(report),
        list(_grids(report)),
        list(_notes(report)),
        json=lambda: _json_text(report),
        rows=lambda: [_values(each, report.rate) for each in report.entries],
        lead=list(report.answer.lead()),
    )
    refuse_damage(
        (", ".join(filter(None, (report.source, each.profile))), each.wear.end)
        for each in report.entries
    )


def _title(report: Report) -> str:
    return plain(f"{report.source} on {report.device.name}: {report.device.summary}")


def _grids(report: Report) -> Iterator[Grid]:
    yield _summary(report)
    if report.loads:
        yield members.grid(report.loads)
    if report.is_sweep:
        return
    yield Grid(
        "Erases per block, first to last; the darkest shade is the most erased block",
        ("profile", "least", "mean", "most", "block", "σ", "map"),
        [
            [_name(each), *_erases(each.wear), wear_map(each.wear.erases)]
            for each in _firsts(report)
        ],
        left=(0, 6),
    )
    if report.by is not None:
        for entries in _alike(report):
            yield _charged(entries, report.by, report.top)


def _alike(report: Report) -> list[list[Entry]]:
    """Return the entries that have charges, those with the same charges together."""
    found: dict[tuple[Charge, ...], list[Entry]] = {}
    for each in _firsts(report):
        found.setdefault(tuple(each.wear.charges), []).append(each)
    return [entries for charges, entries in found.items() if charges]


def _firsts(report: Report) -> list[Entry]:
    return [found[0] for found in report.groups()]


def _summary(report: Report) -> Grid:
    """Return the summary table. A sweep has a column of steps, and each profile's name once."""
    header = (
        "profile",
        *(["spare"] if report.is_sweep else []),
        "host",
        "NAND",
        "WA",
        *([] if report.is_sweep else ["total WA"]),
        "effective" if report.is_sweep else "spare",
        "TBW",
        "runs",
        "lasts",
    )
    lines: list[list[str]] = []
    named = ""
    for found in report.groups():
        first = found[0]
        name = _name(first)
        label = [name]
        if report.is_sweep:
            label = ["" if name == named else name, first.variant.removeprefix("spare ")]
            named = name

        wears = [each.wear for each in found]
        whole = _median((each.stack_amplification for each in wears), _ratio)
        lines.append(
            [
                *label,
                _median((each.host_write_bytes for each in wears), human_bytes),
                _median((each.nand_write_bytes for each in wears), human_bytes),
                _median((each.device_amplification for each in wears), _ratio),
                *([] if report.is_sweep else [whole]),
                human_share(first.wear.effective_spare),
                _median((each.life.host_write_bytes for each in wears), decimal_bytes),
                _median((each.life.runs for each in wears), _count),
                _median((each.life.years(report.rate) for each in wears), human_years),
            ]
        )
    return Grid("", header, lines)


_INFLATED_SPARE = 0.05
"""Excess of the model's spare over the device's from which the result is misleading: a model has at
least a few blocks, however small the workload."""


def _median(values: Iterable[float | None], text: Callable[[float], str]) -> str:
    known = [value for value in values if value is not None]
    return or_nothing(stats.interval(known).median if known else None, text)


def _notes(report: Report) -> Iterator[str]:
    yield from dict.fromkeys(
        plain(f"Caution: {'' if _name(each) == 'recording' else f'{_name(each)}: '}{told}.")
        for each in report.entries
        if (told := incomplete(each.wear.end, "replayed"))
    )
    first = report.entries[0].wear
    device, geometry = report.device, first.geometry
    unit = geometry["unit_bytes"]
    block, page = (human_bytes(unit * geometry[name]) for name in ("block_units", "page_units"))
    size = _size(report)
    spare = (
        ""
        if report.is_sweep
        else (
            f"; spare {human_share(first.nominal_spare)} nominal,"
            f" {human_share(first.effective_spare)} effective"
        )
    )
    yield (
        f"Model: {geometry['blocks']:,} blocks of {block}, pages of {page}, mapped in units of"
        f" {human_bytes(unit)}, as large as {size} ({human_bytes(first.disk_bytes)}){spare}."
    )
    if not report.is_sweep and first.nominal_spare > device.spare + _INFLATED_SPARE:
        remedy = "longer trace" if report.is_trace else "larger disk"
        yield (
            f"Caution: {size} is too small for this model: spare is"
            f" {human_share(first.nominal_spare)} in place of the device's"
            f" {human_share(device.spare)}, so WA is too low and the life too long. Use a"
            f" {remedy}."
        )
    yield from _beyond(report)
    settled = (
        "until steady"
        if all(each.wear.is_steady for each in report.entries)
        else "and still NOT steady"
    )
    most = max(each.wear.passes for each in report.entries)
    setup, workload = ("", "trace") if report.is_trace else ("setup once, ", "workload")
    yield (
        f"Preconditioning: {setup}{first.filled * 100:.0f} % of the device filled with data that is"
        f" never rewritten, then the {workload} up to {most:,} times{_repeated(report)}, {settled}."
    )
    whole = "" if report.is_sweep else "; total WA: NAND bytes ÷ bytes that the programs wrote"
    yield f"WA: NAND bytes ÷ host bytes{whole}."
    rated = device.values["rated_write_bytes"]
    endurance = f" Rated by the manufacturer for {decimal_bytes(rated)}." if rated else ""
    yield (
        f"TBW: host bytes until the most erased block has {device.values['pe_cycles']:,} cycles, on"
        f" the whole device ({human_bytes(device.values['capacity_bytes'])}).{endurance}"
    )
    yield from report.answer.limits()
    yield from members.notes(report.loads)
    rate = report.rate
    if rate is not None:
        speed = "the trace's own speed" if report.is_trace else "the speed of the first profile"
        how = "as requested" if report.runs_per_day else f"back to back, at {speed}"
        if report.per_day_bytes is not None:
            how = f"with which the first row writes {decimal_bytes(report.per_day_bytes)}"
        yield f"lasts: at {_count(rate)} runs of the {workload} a day, {how}."
    if not report.is_sweep and report.by is not None and _alike(report):
        yield (
            f"Wear by {report.by.value}: programs: written for the row; moved: copies of the row's"
            " own data; caused: copies of any data that the row's writes forced. Of NAND: programs"
            " and moved; of NAND, caused: programs and caused. (cold data): what filled the device."
        )


def _beyond(report: Report) -> Iterator[str]:
    """Warn of addresses that the device does not have."""
    largest = max((each.wear.disk_bytes for each in report.entries), default=0)
    capacity = report.device.values["capacity_bytes"]
    if largest > capacity and not report.is_sweep:
        remedy = ", or --disk-size if the trace has stray addresses" if report.is_trace else ""
        yield (
            f"Caution: the disk has {decimal_bytes(largest)}, more than the device"
            f" ({decimal_bytes(capacity)}). Name a larger device{remedy}."
        )


def _repeated(report: Report) -> str:
    """Tell how repetitions differ."""
    is_varied = any(each.wear.exact_nand_write_bytes is not None for each in report.entries)
    return " at other addresses of the same regions" if is_varied else ""


def _size(report: Report) -> str:
    """Describe the size of the model."""
    if report.place is Place.FOOTPRINT:
        return "what the workload writes"
    if report.has_disk_size:
        return "--disk-size says"
    return "the extent of the trace" if report.is_trace else "the recorded disk"


def _name(entry: Entry) -> str:
    disk = "" if entry.wear.disk == "main" else entry.wear.disk
    return plain(", ".join(word for word in (entry.profile, disk) if word)) or "recording"


def wear_map(erases: NDArray[np.uint32], width: int = _MAP_COLUMNS) -> str:
    """Draw mean erases of neighbouring blocks as shades. Only blocks never erased are blank."""
    most = int(erases.max())
    parts = np.array_split(erases, min(width, len(erases)))
    means = [float(part.mean()) for part in parts]
    return "".join(
        _SHADES[0] if mean == 0 else _SHADES[max(1, round(mean / most * (len(_SHADES) - 1)))]
        for mean in means
    )


def _erases(wear: Wear) -> list[str]:
    """Return minimum, mean and maximum erases, the most erased block and the standard deviation."""
    found = wear.erases
    return [
        f"{found.min()}",
        f"{found.mean():.2f}",
        f"{found.max()}",
        f"{int(found.argmax()):,}",
        f"{found.std():.2f}",
    ]


def _charged(entries: Sequence[Entry], by: By, top: int) -> Grid:
    """Return the table of entries that have the same charges."""
    entry = entries[0]
    charges = list(entry.wear.charges)
    shown = charges[:top]
    if rest := charges[top:]:
        sums = [
            sum(getattr(each, name) for each in rest)
            for name in Charge.__dataclass_fields__
            if name != "name"
        ]
        shown.append(Charge(f"{len(rest)} more", *sums))
    host, nand = entry.wear.host_write_bytes, entry.wear.nand_write_bytes
    lines = [
        [
            one_line(each.name),
            _share(each.host_write_bytes, host),
            _share(each.nand_write_bytes, nand),
            _share(each.nand_caused_bytes, nand),
            human_bytes(each.program_bytes + each.padding_bytes),
            human_bytes(each.moved_bytes),
            human_bytes(each.caused_bytes),
        ]
        for each in shown
    ]
    header = (by.value, "of host", "of NAND", "of NAND, caused", "programs", "moved", "caused")
    return Grid(f"{', '.join(map(_name, entries))}: wear by {by.value}", header, lines)


def _share(part: float, whole: float) -> str:
    return percent(round(part), round(whole)) if whole else NOTHING


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _count(value: float) -> str:
    if value < 1e6:
        return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
    return f"{value / 1e6:,.0f} M" if value >= 1e7 else f"{value / 1e6:.1f} M"


def _values(entry: Entry, rate: float | None) -> dict[str, Any]:
    wear = entry.wear
    found: dict[str, Any] = {
        "profile": entry.profile,
        "repetition": entry.repetition,
        "variant": entry.variant,
        "disk": wear.disk,
    }
    found |= {name: getattr(wear, name) for name in _METRICS}
    erases = wear.erases
    found |= {
        "min_erases": int(erases.min()),
        "max_erases": int(erases.max()),
        "mean_erases": float(erases.mean()),
        "erases_variance": float(erases.var()),
        "worst_block": int(erases.argmax()),
        "is_steady": wear.is_steady,
        "lifetime_host_write_bytes": wear.life.host_write_bytes,
        "lifetime_runs": wear.life.runs,
        "lifetime_mean_runs": wear.life.mean_runs,
        "runs_per_day": rate,
        "lifetime_years": wear.life.years(rate),
        "lifetime_years_most": (wear.life_most or wear.life).years(rate),
    }
    return found


def _json_text(report: Report) -> str:
    device = report.device
    entries = []
    for each in report.entries:
        found = _values(each, report.rate) | {
            "end": each.wear.end,
            "geometry": dict(each.wear.geometry),
            "erases": each.wear.erases.tolist(),
        }
        if each.wear.charges:
            found["charges"] = [
                vars(charge) | {"nand_write_bytes": charge.nand_write_bytes}
                for charge in each.wear.charges
            ]
        entries.append(found)
    about = {
        "name": device.name,
        "summary": device.summary,
        "values": dict(device.values),
        "sources": dict(device.sources),
    }
    by = None if report.by is None else report.by.value
    value = {"source": report.source, "device": about, "by": by, "entries": entries}
    if report.loads:
        value["arrays"] = [members.values(each) for each in report.loads]
    if report.counters is not None:
        value["now"] = report.answer.values()
    return document.text("wear", value)
