"""Conversion of a recording to rows that explain each written extent. This is a thin layer over the
native module, which interprets the file systems."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fscost import capture
from fscost.analyze.rows import SCHEMA, parts
from fscost.analyze.sums import Batches, Collector, Sum, grouped
from fscost.errors import InputError

FORMATTING = ("before", "mkfs", "mount")
"""Intervals of a cell that precede its workload."""


@dataclass(frozen=True)
class Mark:
    """A named instant. The lab's marks name the interval that begins there; `detail` is the lab's
    own data."""

    at_ns: int
    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """Explanation of a recording.

    `batches` yields the rows, with the columns of docs/explaining.md, from the beginning at each
    call, because they are never all in memory. `families`: kind of file system on each disk.
    `phases`: all intervals, in order. `end`: how the recording ends. `is_timed`: false if the
    source has no times. `punched_bytes`: bytes by phase that were written as zeroes and reached the
    disk as a punched hole.
    """

    batches: Batches
    families: Mapping[str, str | None]
    phases: Sequence[str]
    journal_structures: frozenset[str]
    end: str = "finished"
    marks: Sequence[Mark] = ()
    is_timed: bool = True
    punched_bytes: Mapping[str, int] = field(default_factory=dict)
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

        return replace(self, batches=self._only("phase", phases), _sums={})

    def on_disk(self, disk: str) -> "Explanation":
        """Restrict the explanation to this disk."""
        return replace(
            self, batches=self._only("disk", [disk]), families={disk: self.families[disk]}, _sums={}
        )

    def _only(self, column: str, names: Sequence[str]) -> Batches:
        def kept() -> Iterator[pa.RecordBatch]:
            for batch in self.batches():
                yield from parts(batch, column, names)

        return kept

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
        """Compute several sums and run other collectors in one pass over the rows."""
        sums = {
            keys: Sum(keys)
            for keys in several
            if keys not in self._sums and self._finer(keys) is None
        }
        if not sums and not others:
            return
        collectors = (*sums.values(), *others)
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
            tables = [*map(lambda thread, each: thread.submit(each.table), threads, sums.values())]
            for keys, table in zip(sums, tables, strict=True):
                found = table.result()
                self._sums[keys] = _no_sums(keys) if found is None else found


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
    )


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
    return pa.schema(
        [*(SCHEMA.field(key) for key in dict.fromkeys(keys)), pa.field("length_sum", pa.uint64())]
    ).empty_table()
