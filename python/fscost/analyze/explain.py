"""Conversion of a recording to rows that explain each written extent. This is a thin layer over the
native module, which interprets the file systems."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from fscost import capture
from fscost.analyze.rows import DIRECTORY, SCHEMA, parts
from fscost.analyze.sums import Batches, Collector, Sum, grouped
from fscost.errors import InputError

if TYPE_CHECKING:
    from fscost import _native
    from fscost._native import Batch

FORMATTING = ("before", "mkfs", "mount")
"""Intervals of a cell that precede its workload."""


@dataclass(frozen=True)
class Mark:
    """A named instant. The lab's marks name the interval that begins there; `detail` is the lab's
    own data."""

    at_ns: int
    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class NativeSums:
    """Sums of one recording by the native module, several times faster than sums of batches."""

    def __init__(self, native: "_native.Explanation", recording: Path) -> None:
        self._native, self._recording = native, recording

    def summed(self) -> Sequence[str]:
        """Return the columns that bytes can be summed by."""
        return self._native.summed()

    def sums(
        self,
        several: Sequence[Sequence[str]],
        phases: Sequence[str] | None,
        disks: Sequence[str] | None,
    ) -> "Sequence[Batch]":
        """Sum the bytes of the rows of these phases and disks by each list of columns."""
        with capture.errors(self._recording):
            return self._native.sums(several, phases, disks)

    def logged(
        self, phases: Sequence[str] | None, disks: Sequence[str] | None
    ) -> "tuple[Batch, Batch]":
        """Sum the rows by transaction, and count the transactions that copied each block."""
        with capture.errors(self._recording):
            return self._native.logged(phases, disks)


@runtime_checkable
class NativeCollector(Collector, Protocol):
    """Collector that may need no batches."""

    @property
    def is_native(self) -> bool:
        """True if `collect` takes the place of `add`."""

    def collect(
        self, native: NativeSums, phases: Sequence[str] | None, disks: Sequence[str] | None
    ) -> None:
        """Collect what the rows of these phases and disks add up to."""


@dataclass(frozen=True)
class Explanation:
    """Explanation of a recording.

    `batches` yields the rows, with the columns of docs/explaining.md, from the beginning at each
    call, because they are never all in memory. `families`: kind of file system on each disk.
    `phases`: all intervals, in order. `end`: how the recording ends. `is_timed`: false if the
    source has no times. `punched_bytes`: bytes by phase that were written as zeroes and reached the
    disk as a punched hole. `native` sums without batches, if it can.
    """

    batches: Batches
    families: Mapping[str, str | None]
    phases: Sequence[str]
    journal_structures: frozenset[str]
    end: str = "finished"
    marks: Sequence[Mark] = ()
    is_timed: bool = True
    punched_bytes: Mapping[str, int] = field(default_factory=dict)
    native: NativeSums | None = field(default=None, repr=False, compare=False)
    _chosen: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)
    _sums: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, repr=False, compare=False)

    @property
    def measured(self) -> list[str]:
        """Phases that the recording itself marks as measured."""
        return measured(self.phases, self.marks)

    @property
    def table(self) -> pa.Table:
        """All rows in one table, for notebooks; each row takes about a hundred bytes."""
        return pa.Table.from_batches(list(self.batches()), schema=SCHEMA)

    def within(self, phases: Sequence[str]) -> "Explanation":
        """Restrict the explanation to these phases."""
        if unknown := [name for name in phases if name not in self.phases]:
            raise InputError(
                f"there is no phase {unknown[0]!r} in this recording",
                f"its phases are {', '.join(self.phases)}",
            )

        return self._only("phase", phases)

    def on_disk(self, disk: str) -> "Explanation":
        """Restrict the explanation to this disk."""
        return replace(self._only("disk", [disk]), families={disk: self.families[disk]})

    def with_batches(self, batches: Batches) -> "Explanation":
        """Replace the rows, for example by rows with other owners. The native module does not know
        them."""
        return replace(self, batches=batches, native=None, _sums={})

    def _only(self, column: str, names: Sequence[str]) -> "Explanation":
        def kept() -> Iterator[pa.RecordBatch]:
            for batch in self.batches():
                yield from parts(batch, column, names)

        before = self._chosen.get(column, names)
        chosen = {**self._chosen, column: [name for name in names if name in before]}
        return replace(self, batches=kept, _chosen=chosen, _sums={})

    def sums(self, *keys: str) -> pa.Table:
        """Sum bytes by each combination of these columns' values: the keys, and `length_sum`. A
        finer sum is reused if there is one."""
        if keys not in self._sums and (finer := self._finer(keys)) is not None:
            sums = grouped(self._sums[finer], keys, [("length_sum", "sum")])
            self._sums[keys] = sums.rename_columns([*keys, "length_sum"])
        self.prepare([keys])
        return self._sums[keys]

    def _finer(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        finer = [known for known in self._sums if set(keys) <= set(known)]
        return min(finer, key=lambda known: self._sums[known].num_rows, default=None)

    def prepare(self, several: Iterable[tuple[str, ...]], *others: Collector) -> None:
        """Compute several sums and run other collectors in one pass over the rows, beside the sums
        of the native module."""
        wanted = [
            keys
            for keys in dict.fromkeys(several)
            if keys not in self._sums and self._finer(keys) is None
        ]
        if not wanted and not others:
            return
        summed = set() if self.native is None else set(self.native.summed())
        natively = [keys for keys in wanted if summed.issuperset(keys)]
        sums = {keys: Sum(keys) for keys in wanted if keys not in natively}
        alone = [each for each in others if isinstance(each, NativeCollector) and each.is_native]
        alone = [] if self.native is None else alone
        in_batches = [*sums.values(), *(each for each in others if each not in alone)]
        with ThreadPoolExecutor(1 + len(alone)) as threads:
            native_sums = threads.submit(self._natively, natively)
            collecting = [threads.submit(self._collect, each) for each in alone]
            found = self._collected(in_batches)
            tables: dict[tuple[str, ...], pa.Table | None] = dict(zip(sums, found, strict=False))
            for each in collecting:
                each.result()
            tables |= native_sums.result()
        for keys, table in tables.items():
            self._sums[keys] = table if table is not None and table.num_rows else _no_sums(keys)

    def _collect(self, collector: NativeCollector) -> None:
        assert self.native is not None
        collector.collect(self.native, self._chosen.get("phase"), self._chosen.get("disk"))

    def _natively(self, several: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], pa.Table]:
        if self.native is None or not several:
            return {}
        columns = [list(dict.fromkeys(keys)) for keys in several]
        found = self.native.sums(columns, self._chosen.get("phase"), self._chosen.get("disk"))
        batches = [pa.record_batch(each) for each in found]
        return {
            keys: pa.Table.from_batches([batch])
            for keys, batch in zip(several, batches, strict=True)
        }

    def _collected(self, collectors: Sequence[Sum | Collector]) -> list[pa.Table | None]:
        """Run the collectors in one pass over the rows; return the tables of the sums."""
        if not collectors:
            return []
        with ExitStack() as stack:
            # A thread each, so that no collector waits for a slower one, except with two batches.
            threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in collectors]
            before: list[Future[None]] = []
            for batch in self.batches():
                adding = [
                    thread.submit(each.add, batch)
                    for thread, each in zip(threads, collectors, strict=True)
                ]
                for each in before:
                    each.result()
                before = adding
            for each in before:
                each.result()
            tables = [
                thread.submit(each.table)
                for thread, each in zip(threads, collectors, strict=True)
                if isinstance(each, Sum)
            ]
            return [table.result() for table in tables]


def explain(recording: Path, begun: capture.Explaining | None = None) -> Explanation:
    """Explain every written byte of a recording; `begun` is an explanation already in progress."""
    begun = begun or capture.Explaining(recording).start()
    facts = begun.source.info()
    native = begun.result()
    disks = [disk["name"] for disk in facts["disks"]]
    families = dict(zip(disks, native.families(), strict=True))
    marks = [mark(*each) for each in native.marks()]

    def batches() -> Iterator[pa.RecordBatch]:
        with capture.errors(recording):
            for batch in native:
                yield pa.record_batch(batch)

    return Explanation(
        batches,
        families,
        native.phases(),
        frozenset(name for name, _, is_journal in capture.structures() if is_journal),
        facts["end"],
        marks,
        # A dm-log-writes log has neither a beginning nor times.
        is_timed=facts["begin_unix_ns"] > 0,
        punched_bytes=native.punched_bytes(),
        native=NativeSums(native, recording),
    )


def incomplete(end: str, shown: str = "shown") -> str:
    """Tell that a recording ends early; nothing if it is whole. `end` is that of an explanation."""
    if end == "finished":
        return ""
    return f"the recording is incomplete ({end}): only the part before is {shown}"


def mark(at_ns: int, name: str, text: str | None) -> Mark:
    """Convert a mark of the native module."""
    return Mark(at_ns, name, _detail(text))


def measured(phases: Sequence[str], marks: Sequence[Mark]) -> list[str]:
    """Return the phases whose marks say that they are measured. Older recordings have no such
    marks: then the phases after mkfs and mount are measured, or all phases if no mkfs was
    recorded."""
    marked = {mark.name for mark in marks if mark.detail.get("measured") is True}
    if found := [name for name in phases if name in marked]:
        return found
    if "mkfs" not in phases:
        return list(phases)
    return [name for name in phases if name not in FORMATTING]


def measured_phases(recording: Path) -> list[str]:
    """Return the measured phases of a recording."""
    with capture.opened(recording) as source:
        marks = [mark(*each) for each in source.marks()]
    return measured([each.name for each in marks] or ["before"], marks)


def _detail(text: str | None) -> Mapping[str, Any]:
    """Parse the detail of a mark. The recording is untrusted: anything but an object counts as
    empty."""
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) else {}


def _no_sums(keys: Sequence[str]) -> pa.Table:
    columns = SCHEMA.append(DIRECTORY)
    return pa.schema(
        [*(columns.field(key) for key in dict.fromkeys(keys)), pa.field("length_sum", pa.uint64())]
    ).empty_table()
