"""Replay of a recorded disk on a device: programs and erases of one run, charged to causes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fscost import analyze, capture
from fscost.analyze.groups import NO_FILE
from fscost.errors import InputError
from fscost.results.worn import EXACT, NAND, ROAMING, runs_per_day
from fscost.wear.array import Shape
from fscost.wear.device import Device
from fscost.wear.life import Life, life

if TYPE_CHECKING:
    from fscost._native import Explanation, Replayed, Workload, WorkloadInfo

MOST_ROUNDS = 64
_ROAMING_ROUNDS = 16
"""Four device writes: enough for an upper end."""
_MOST_ROAMING_UNITS = 2 << 20
"""Maximum units of a disk whose upper end is computed unasked: 8 GiB of 4 KiB. Each is written four
times, in places that no cache holds."""
_LEAST_ROAMING = 0.02
"""Share of the written units that may roam, from which on the upper end is computed."""
MOST_UNITS = 32 << 20
"""Maximum units of a modelled disk: 128 GiB of 4 KiB. A replay writes each up to sixteen times."""
_MOST_DISKS = 16
"""Maximum number of disks of a trace that are replayed without being chosen, because some traces
have thousands of volumes."""
_MOST_NAMES = 8
NOTHING, REST, DISCARDS, COLD = "(none)", "(others)", "(discards)", "(cold data)"
_SPECIAL = {-2: REST, -3: DISCARDS, -4: COLD}
"""Names of the native module's negative numbers but −1, which is no name: groups beyond the number of tags,
discards, and data that the workload did not write."""


class By(StrEnum):
    """Grouping of charges."""

    CAUSE = "cause"
    STRUCTURE = "structure"
    PATH = "path"
    STEP = "step"


class Place(StrEnum):
    """Size of the modelled device: that of the recorded disk, or of all addresses written."""

    DISK = "disk"
    FOOTPRINT = "footprint"


class Repeat(StrEnum):
    """Addresses of each repetition: others of the same regions, the same, or, for what is written
    once, any on the disk."""

    VARIED = "varied"
    EXACT = "exact"
    ROAMING = "roaming"


@dataclass(frozen=True)
class Charge:
    """Charge to one name, in bytes of one run of the workload.

    `moved`: copies of its own data. `caused`: copies of any data that its writes made necessary,
    because they had invalidated the neighbours. Either column, added to the bytes programmed and
    padded, gives all NAND bytes.
    """

    name: str
    host_write_bytes: float
    program_bytes: float
    padding_bytes: float
    moved_bytes: float
    caused_bytes: float

    @property
    def nand_write_bytes(self) -> float:
        """NAND bytes by the owner of the programmed data."""
        return self.program_bytes + self.padding_bytes + self.moved_bytes

    @property
    def nand_caused_bytes(self) -> float:
        """NAND bytes by the writes that made them necessary."""
        return self.program_bytes + self.padding_bytes + self.caused_bytes


@dataclass(frozen=True)
class Wear:
    """Wear of a device of the disk's size: bytes of one run, erases of all repetitions."""

    disk: str
    disk_bytes: int
    seconds: float
    host_write_bytes: int
    trim_bytes: int
    flushes: int
    program_write_bytes: int | None
    nand_write_bytes: float
    copy_bytes: float
    levelling_bytes: float
    padding_bytes: float
    absorbed_bytes: float
    geometry: Mapping[str, int]
    passes: int
    is_steady: bool
    nominal_spare: float
    effective_spare: float
    filled: float
    erases: NDArray[np.uint32]
    life: Life
    charges: Sequence[Charge] = ()
    life_most: Life | None = None
    """Life if blocks survive the most cycles that are plausible; None if no range is known."""
    exact_nand_write_bytes: float | None = None
    """NAND bytes if each repetition wrote the same addresses in the same order; None if it did, or
    if that makes no difference."""
    roaming_nand_write_bytes: float | None = None
    """NAND bytes if each repetition placed what it writes once elsewhere on the disk; None if that
    makes no difference, or was not asked for."""
    end: str = "finished"
    """How the recording ends, as in an explanation."""

    @property
    def device_amplification(self) -> float | None:
        """NAND bytes ÷ host bytes."""
        return self.nand_write_bytes / self.host_write_bytes if self.host_write_bytes else None

    @property
    def exact_amplification(self) -> float | None:
        """`device_amplification` of exact repetitions."""
        if self.exact_nand_write_bytes is None or not self.host_write_bytes:
            return None
        return self.exact_nand_write_bytes / self.host_write_bytes

    @property
    def roaming_amplification(self) -> float | None:
        """`device_amplification` if repetitions roam over the disk."""
        if self.roaming_nand_write_bytes is None or not self.host_write_bytes:
            return None
        return self.roaming_nand_write_bytes / self.host_write_bytes

    @property
    def stack_amplification(self) -> float | None:
        """NAND bytes ÷ bytes that the program wrote."""
        return (
            self.nand_write_bytes / self.program_write_bytes if self.program_write_bytes else None
        )

    @property
    def runs_per_day(self) -> float | None:
        """Runs of the workload per day, back to back."""
        return runs_per_day(self.seconds)


@dataclass(frozen=True)
class Source:
    """A disk of a recording, ready to be replayed. The phases in `measured` are repeated; the
    others run once, before them."""

    recording: Path
    disk: str
    index: int
    measured: Sequence[str]
    seconds: float
    native: "Explanation | None" = None
    """The native explanation, or None."""
    array: Shape | None = None
    """The array that the disk represents; the source is its `member`."""
    member: int = 0
    workload: "Workload | None" = None
    """The native workload of a trace, which holds everything known about it."""
    end: str = "finished"


def sources(
    recording: Path,
    *,
    is_explained: bool,
    measured: Sequence[str] = (),
    disk: str | None = None,
    begun: capture.Explaining | None = None,
) -> list[Source]:
    """Return the disks of a recording. The recording is explained only if charges are requested,
    because that takes most of the time. `begun` is an explanation already in progress."""
    begun = (begun or capture.Explaining(recording).start()) if is_explained else None
    facts = capture.info(recording)
    names = [str(each["name"]) for each in facts["disks"]]
    if disk is not None and disk not in names:
        raise InputError(
            f"{recording} has no disk {disk!r}", f"name one of its disks: {', '.join(names)}"
        )
    phases = list(measured) or analyze.measured_phases(recording)
    seconds = _seconds(capture.intervals(recording), phases, is_timed=bool(facts["begin_unix_ns"]))
    native = begun.result() if begun is not None else None
    return [
        Source(recording, name, index, phases, seconds, native=native, end=str(facts["end"]))
        for index, name in enumerate(names)
        if disk is None or name == disk
    ]


def _seconds(
    intervals: Sequence[capture.RecordedInterval], phases: Sequence[str], *, is_timed: bool
) -> float:
    """Return the duration of these phases; 0 if it is unknown. Emulated guests have a clock of
    their own, which the tables of the run show."""
    total_ns = 0
    for each, after in zip(intervals, [*intervals[1:], None], strict=True):
        if each.name not in phases:
            continue
        if each.virtual_ns is not None and after is not None and after.virtual_ns is not None:
            total_ns += max(0, after.virtual_ns - each.virtual_ns)
        elif is_timed:
            total_ns += each.end_ns - each.begin_ns
    return total_ns / 1e9


def trace_sources(
    path: Path,
    device: Device,
    form: str | None,
    *,
    disk: str | None = None,
    window_s: float | None = None,
    disk_bytes: int | None = None,
) -> list[Source]:
    """Return the disks of a block trace (docs/traces.md). All its requests are repeated; their
    causes are unknown. `window_s` is the duration of the capture, by default the time from the
    first line of the trace to the last one. `disk_bytes` is the size of each disk, by default its
    highest address."""
    with capture.opened_trace(path, device.native(0), form) as (_, disks):
        names = [name for name, _, _ in disks]
        if not names:
            raise InputError(
                f"{path} has no requests", "name a trace that has some (docs/traces.md)"
            )
        traced_s = max(seconds for _, _, seconds in disks)
        if window_s is not None and window_s < traced_s:
            raise InputError(
                f"--window {window_s:g} s is shorter than the trace, which lasts {traced_s:g} s",
                "give the duration of the whole capture",
            )
        if disk is not None and disk not in names:
            raise InputError(
                f"{path} has no disk {disk!r}",
                f"name one of its disks: {', '.join(names[:_MOST_NAMES])}",
            )
        if disk is None and len(names) > _MOST_DISKS:
            raise InputError(
                f"{path} has {len(names)} disks",
                f"choose one with --disk: {', '.join(names[:_MOST_NAMES])}, …",
            )
        return [
            Source(
                path,
                name,
                index,
                (),
                window_s or seconds,
                workload=_resized(path, name, workload, disk_bytes),
            )
            for index, (name, workload, seconds) in enumerate(disks)
            if disk is None or name == disk
        ]


def _resized(path: Path, name: str, workload: "Workload", disk_bytes: int | None) -> "Workload":
    if disk_bytes is None:
        return workload
    end = workload.info()["disk_bytes"]
    if end > disk_bytes:
        raise InputError(
            f"{path}: a request to {name} ends at byte {end:,}, beyond --disk-size {disk_bytes:,}",
            "give the size of the disk that was traced",
        )
    return workload.on_disk(disk_bytes)


def members(
    recording: Path, array: Shape, *, measured: Sequence[str] = (), disk: str | None = None
) -> list[Source]:
    """Return the members of the array that a recorded disk represents."""
    found = sources(recording, is_explained=False, measured=measured, disk=disk)
    if len(found) > 1:
        names = ", ".join(each.disk for each in found)
        raise InputError(
            f"{recording} has {len(found)} disks",
            f"--array takes one as the array device: name it with --disk ({names})",
        )
    (source,) = found
    size = next(
        each["size_bytes"]
        for each in capture.info(recording)["disks"]
        if each["name"] == source.disk
    )
    shape = array.for_disk(size)
    return [
        replace(source, disk=f"m{member}", array=shape, member=member)
        for member in range(shape.members)
    ]


def measure(
    source: Source,
    device: Device,
    *,
    by: By | None = None,
    fill: float = 1.0,
    place: Place = Place.DISK,
    repeat: Repeat = Repeat.VARIED,
    seed: int = 1,
    program_write_bytes: int | None = None,
    known: Mapping[str, float] = {},
) -> Wear:
    """Replay a disk's requests on a device until write amplification is steady. `known`: the NAND
    bytes of an earlier replay, as from `worn`, whose ends are not computed again if it gave the
    same."""
    model = device.native(seed)
    with capture.errors(source.recording):
        try:
            workload = source.workload or _workload(source, model, by)
            if place is Place.FOOTPRINT:
                workload = workload.footprint(model)
            _check_size(source, workload.info())
            found = workload.replay(model, fill, MOST_ROUNDS, by is not None, repeat)
            is_same = known.get(NAND) == _programmed_bytes(found)
            exact, roaming = _ends(workload, model, fill, repeat, found, known if is_same else {})
        except ValueError as error:
            raise InputError(
                f"{device.origin or device.name}: {error}", "see docs/wear.md, Devices"
            ) from None
    info = workload.info()
    per_pass = found["unit_bytes"] / max(found["counted_passes"], 1)
    names = None if by is None or source.native is None else _Names(source.native, by)
    least, most = (
        _life(device, cycles, found, info["write_bytes"])
        for cycles in (device.values["pe_cycles"], device.most_pe_cycles)
    )
    return Wear(
        disk=source.disk,
        disk_bytes=info["disk_bytes"],
        seconds=source.seconds,
        host_write_bytes=info["write_bytes"],
        trim_bytes=info["trim_bytes"],
        flushes=info["flushes"],
        program_write_bytes=program_write_bytes,
        nand_write_bytes=_programmed_bytes(found),
        copy_bytes=found["copied_units"] * per_pass,
        levelling_bytes=found["levelled_units"] * per_pass,
        padding_bytes=found["padded_units"] * per_pass,
        absorbed_bytes=found["absorbed_units"] * per_pass,
        geometry={
            name: found[name]
            for name in ("unit_bytes", "page_units", "block_units", "blocks", "logical_units")
        },
        passes=found["passes"],
        is_steady=found["is_steady"],
        nominal_spare=found["nominal_spare"],
        effective_spare=found["effective_spare"],
        filled=found["mapped_units"] / found["logical_units"],
        erases=np.frombuffer(found["erases"], np.uint32),
        life=least,
        charges=_charges(found["charges"], per_pass, names) if names is not None else (),
        life_most=most if device.values["pe_cycles_most"] else None,
        exact_nand_write_bytes=exact,
        roaming_nand_write_bytes=roaming,
        end=source.end,
    )


def _ends(
    workload: "Workload",
    model: Mapping[str, object],
    fill: float,
    repeat: Repeat,
    found: "Replayed",
    known: Mapping[str, float],
) -> tuple[float | None, float | None]:
    """Return the NAND bytes of a pass if passes were exact, and if they roamed; None where that
    makes no difference."""
    if repeat is not Repeat.VARIED:
        return None, None

    def of(other: Repeat, rounds: int, metric: str) -> float:
        if metric in known:
            return known[metric]
        return _programmed_bytes(workload.replay(model, fill, rounds, False, other))

    roams = (
        found["roaming_units"] > _LEAST_ROAMING * workload.info()["write_units"]
        and found["logical_units"] <= _MOST_ROAMING_UNITS
    )
    return (
        of(Repeat.EXACT, MOST_ROUNDS, EXACT) if found["varied_units"] else None,
        of(Repeat.ROAMING, _ROAMING_ROUNDS, ROAMING) if roams else None,
    )


def _life(device: Device, pe_cycles: int, found: "Replayed", host_write_bytes: int) -> Life:
    # Cold blocks of the device are not part of the model, and are never erased.
    blocks = found["blocks"] + found["cold_blocks"]
    return life(
        pe_cycles=pe_cycles,
        nand_bytes=device.values["nand_bytes"],
        nand_write_bytes=_programmed_bytes(found),
        erased_bytes=_per_pass(found, found["erased_blocks"] * found["block_units"]),
        host_write_bytes=host_write_bytes,
        mean_erases=found["mean_erases"] * found["blocks"] / blocks,
        max_erases=found["max_erases"],
        is_levelled=bool(device.values["levelling_gap"]),
    )


def _programmed_bytes(found: "Replayed") -> float:
    """Return the NAND bytes of one pass."""
    return _per_pass(found, found["programmed_units"])


def _per_pass(found: "Replayed", units: int) -> float:
    """Return the bytes of one pass, of the units of all counted passes."""
    return units * found["unit_bytes"] / max(found["counted_passes"], 1)


def exact_nand_bytes(disks: Iterable[Wear]) -> float | None:
    """Return the NAND bytes of exact repetitions on all disks; None if they make no difference."""
    return _sum([(each.exact_nand_write_bytes, each.nand_write_bytes) for each in disks])


def roaming_nand_bytes(disks: Iterable[Wear]) -> float | None:
    """Return the NAND bytes of roaming repetitions on all disks; None if they make no
    difference."""
    return _sum([(each.roaming_nand_write_bytes, each.nand_write_bytes) for each in disks])


def _sum(found: Sequence[tuple[float | None, float]]) -> float | None:
    """Return the sum of the first values, or of the second where they are None; None if all
    are."""
    if all(first is None for first, _ in found):
        return None
    return sum(second if first is None else first for first, second in found)


def _check_size(source: Source, info: "WorkloadInfo") -> None:
    """Refuse a disk whose replay would take minutes and gigabytes. A recording of 70 KB can name a
    disk of 2 TiB."""
    units = info["disk_bytes"] // info["unit_bytes"]
    if units > MOST_UNITS:
        raise InputError(
            f"{source.recording}: {source.disk} has {units:,} units of {info['unit_bytes']:,} bytes;"
            f" a model holds at most {MOST_UNITS:,}",
            "add --place footprint, which models the written addresses alone",
        )


def _workload(source: Source, model: Mapping[str, object], by: By | None) -> "Workload":
    with capture.opened(source.recording) as recording:
        if source.array is not None:
            return recording.member_workloads(
                source.index, source.array.native(), model, list(source.measured)
            )[source.member]
        return recording.workload(
            source.index,
            model,
            list(source.measured),
            source.native,
            None if by is None else by.value,
        )


class _Names:
    """Names of groups by number, as `fscost explain --by` spells them."""

    def __init__(self, explained: "Explanation", by: By) -> None:
        self._nothing = NO_FILE if by is By.PATH else NOTHING
        self._texts = explained.names(by.value)
        self._homes = [name for name, _, _ in capture.structures()]

    def text(self, name: int, home: int) -> str:
        if name < 0:
            return _SPECIAL.get(name, self._nothing)
        return f"{self._texts[name]} of {self._homes[home]}" if home >= 0 else self._texts[name]


def _charges(
    charged: Sequence[tuple[int, int, int, int, int, int, int]], per_pass: float, names: _Names
) -> list[Charge]:
    """Return the charges, the largest first."""
    found = [
        Charge(names.text(name, home), write_bytes, *(count * per_pass for count in units))
        for name, home, write_bytes, *units in charged
    ]
    return sorted(found, key=lambda each: (-each.nand_write_bytes, each.name))
