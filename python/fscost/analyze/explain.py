"""From a recording to a table with one row for each written extent. Thin over the native module, which knows the file systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fscost import capture
from fscost.errors import InputError

FORMATTING = ("before", "mkfs", "mount")
"""Intervals of a cell that come before its workload."""


@dataclass(frozen=True)
class Explanation:
    """`table` has the columns of docs/explaining.md; `families` the kind of file system on each disk; `phases` all intervals, in order; `end`
    how the recording ends."""

    table: pa.Table
    families: Mapping[str, str | None]
    phases: Sequence[str]
    journal_structures: frozenset[str]
    end: str = "finished"

    @property
    def measured(self) -> list[str]:
        """The phases after mkfs and mount; all, where no mkfs was recorded."""
        if "mkfs" not in self.phases:
            return list(self.phases)
        return [name for name in self.phases if name not in FORMATTING]

    def within(self, phases: Sequence[str]) -> "Explanation":
        """Only what was written in these phases."""
        if unknown := [name for name in phases if name not in self.phases]:
            raise InputError(f"there is no phase {unknown[0]!r} in this recording", f"its phases are {', '.join(self.phases)}")
        kept = self.table.filter(pc.is_in(self.table["phase"], value_set=pa.array(phases, pa.string())))
        return replace(self, table=kept)

    def write_parquet(self, path: Path) -> None:
        """The table as a file, made whole or not at all, and never over another."""
        with capture.new_file(path):
            try:
                pq.write_table(self.table, path, compression=capture.COMPRESSION)
            except OSError as error:
                raise InputError(str(error), "check the path, its permissions and the space left") from None


def explain(recording: Path) -> Explanation:
    """Explain every written byte of a recording."""
    with capture.opened(recording) as source:
        facts = source.info()
        disks = [disk["name"] for disk in facts["disks"]]
        explanation = source.explain()
        names = explanation.names()
        families = dict(zip(disks, explanation.families(), strict=True))
        batches = [_batch(columns, disks, names) for columns in explanation]
    table = pa.Table.from_batches(batches, schema=_SCHEMA)
    return Explanation(table, families, names["intervals"], frozenset(names["journal_structures"]), facts["end"])


_TEXT = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    {
        "event": pa.uint64(),
        "time_ns": pa.uint64(),
        "phase": _TEXT,
        "disk": _TEXT,
        "offset": pa.uint64(),
        "length": pa.uint64(),
        "structure": _TEXT,
        "home_structure": _TEXT,
        "home_offset": pa.int64(),
        "cause": _TEXT,
        "atime_alone": pa.bool_(),
        "inode": pa.int64(),
        "tree": pa.uint64(),
        "path": _TEXT,
        "transaction": pa.int64(),
        "copy": pa.uint8(),
    }
)


def _batch(columns: Mapping[str, bytes], disks: Sequence[str], names: Mapping[str, Sequence[str]]) -> pa.RecordBatch:
    rows = len(columns["copy"])

    def column(name: str, kind: pa.DataType) -> pa.Array:
        return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(columns[name])])

    def known(array: pa.Array) -> pa.Array:
        return pc.if_else(pc.less(array, 0), pa.scalar(None, array.type), array)

    def text(name: str, values: Sequence[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(known(column(name, pa.int32())), pa.array(values, pa.string()))

    return pa.record_batch(
        [
            column("event", pa.uint64()),
            column("time_ns", pa.uint64()),
            text("interval", names["intervals"]),
            text("disk", disks),
            column("offset", pa.uint64()),
            column("length", pa.uint64()),
            text("structure", names["structures"]),
            text("home", names["structures"]),
            known(column("home_offset", pa.int64())),
            text("cause", names["causes"]),
            column("atime_alone", pa.uint8()).cast(pa.bool_()),
            known(column("inode", pa.int64())),
            column("tree", pa.uint64()),
            text("path", names["paths"]),
            known(column("transaction", pa.int64())),
            column("copy", pa.uint8()),
        ],
        schema=_SCHEMA,
    )
