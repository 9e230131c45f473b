"""From a recording to rows that say what each written extent was. Thin over the native module,
which knows the file systems."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from fscost import capture
from fscost.analyze.rows import SCHEMA, Names, parts
from fscost.analyze.sums import Batches, Collector, Sum
from fscost.errors import InputError

FORMATTING = ("before", "mkfs", "mount")
"""Intervals of a cell that come before its workload."""


@dataclass(frozen=True)
class Mark:
    """A named instant; the lab's names the interval that begins there. `detail` is what the lab
    wrote into it."""

    at_ns: int
    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """`batches` gives the rows, with the columns of docs/explaining.md, from the first on each time
    that it is called: they are never all in
    memory. `families` says the kind of file system on each disk; `phases` all intervals, in order;
    `end` how the recording ends; `is_timed` is false where its source kept no
    times; `punched_bytes`, by phase, what was written as zeroes and reached the disk as a hole
    punched."""

    batches: Batches
    families: Mapping[str, str | None]
    phases: Sequence[str]
    journal_structures: frozenset[str]
    end: str = "finished"
    marks: Sequence[Mark] = ()
    is_timed: bool = True
    punched_bytes: Mapping[str, int] = field(default_factory=dict)
    _sums: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(
        table: pa.Table,
        families: Mapping[str, str | None],
        phases: Sequence[str],
        journal_structures: Iterable[str],
        *,
        marks: Sequence[Mark] = (),
        is_timed: bool = True,
    ) -> "Explanation":
        """Of rows that are all there."""
        whole = table.unify_dictionaries()
        return Explanation(
            lambda: iter(whole.to_batches()),
            families,
            phases,
            frozenset(journal_structures),
            marks=marks,
            is_timed=is_timed,
        )

    @property
    def measured(self) -> list[str]:
        """The phases that the recording itself says are measured."""
        return measured(self.phases, self.marks)

    @property
    def table(self) -> pa.Table:
        """All rows at once, for a notebook: some hundred bytes each."""
        return pa.Table.from_batches(list(self.batches()), schema=SCHEMA)

    def within(self, phases: Sequence[str]) -> "Explanation":
        """Only what was written in these phases."""
        if unknown := [name for name in phases if name not in self.phases]:
            raise InputError(
                f"there is no phase {unknown[0]!r} in this recording",
                f"its phases are {', '.join(self.phases)}",
            )

        return replace(self, batches=self._only("phase", phases), _sums={})

    def on_disk(self, disk: str) -> "Explanation":
        """Only what was written to this disk."""
        return replace(
            self, batches=self._only("disk", [disk]), families={disk: self.families[disk]}, _sums={}
        )

    def _only(self, column: str, names: Sequence[str]) -> Batches:
        def kept() -> Iterator[pa.RecordBatch]:
            for batch in self.batches():
                yield from parts(batch, column, names)

        return kept

    def sums(self, *keys: str) -> pa.Table:
        """Bytes of each combination of these columns' values: the keys, and `length_sum`. Taken
        from a finer sum, where there is one."""
        if keys not in self._sums and (finer := self._finer(keys)) is not None:
            sums = (
                self._sums[finer]
                .combine_chunks()
                .group_by(list(keys))
                .aggregate([("length_sum", "sum")])
            )
            self._sums[keys] = sums.select([*keys, "length_sum_sum"]).rename_columns(
                [*keys, "length_sum"]
            )
        self.prepare([keys])
        return self._sums[keys]

    def _finer(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        finer = [known for known in self._sums if set(keys) <= set(known)]
        return min(finer, key=lambda known: self._sums[known].num_rows, default=None)

    def prepare(self, several: Iterable[tuple[str, ...]], *others: Collector) -> None:
        """One pass over the rows, for several sums that are asked for afterwards and whatever else
        is to be learnt."""
        sums = {
            keys: Sum(keys)
            for keys in several
            if keys not in self._sums and self._finer(keys) is None
        }
        if not sums and not others:
            return
        for batch in self.batches():
            for collector in (*sums.values(), *others):
                collector.add(batch)
        for keys, collector in sums.items():
            self._sums[keys] = _no_sums(keys) if (table := collector.table()) is None else table


def explain(recording: Path, begun: capture.Explaining | None = None) -> Explanation:
    """Explain every written byte of a recording; `begun` where that goes on already."""
    begun = begun or capture.Explaining(recording).start()
    facts = begun.source.info()
    native = begun.result()
    texts = native.names()
    disks = [disk["name"] for disk in facts["disks"]]
    families = dict(zip(disks, native.families(), strict=True))
    marks = [mark(*each) for each in native.marks()]
    names = Names(texts, disks)

    def batches() -> Iterator[pa.RecordBatch]:
        with capture.errors(recording):
            for columns in native:
                yield names.batch(columns)

    return Explanation(
        batches,
        families,
        texts["intervals"],
        frozenset(texts["journal_structures"]),
        facts["end"],
        marks,
        # A dm-log-writes log has neither a beginning nor times.
        is_timed=facts["begin_unix_ns"] > 0,
        punched_bytes=native.punched_bytes(),
    )


def mark(at_ns: int, name: str, text: str | None) -> Mark:
    """A mark of the native module."""
    return Mark(at_ns, name, _detail(text))


def measured(phases: Sequence[str], marks: Sequence[Mark]) -> list[str]:
    """The phases whose marks say so; in older recordings those after mkfs and mount; all, where no
    mkfs was recorded."""
    marked = {mark.name for mark in marks if mark.detail.get("measured") is True}
    if found := [name for name in phases if name in marked]:
        return found
    if "mkfs" not in phases:
        return list(phases)
    return [name for name in phases if name not in FORMATTING]


def measured_phases(recording: Path) -> list[str]:
    """The measured phases of a recording."""
    with capture.opened(recording) as source:
        marks = [mark(*each) for each in source.marks()]
    return measured([each.name for each in marks] or ["before"], marks)


def _detail(text: str | None) -> Mapping[str, Any]:
    """Whoever wrote the recording wrote this: what is no object says nothing."""
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) else {}


def _no_sums(keys: Sequence[str]) -> pa.Table:
    return pa.schema(
        [*(SCHEMA.field(key) for key in dict.fromkeys(keys)), pa.field("length_sum", pa.uint64())]
    ).empty_table()
