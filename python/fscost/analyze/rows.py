"""Columns of the table, and conversion of native batches to Arrow."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
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
        "doubtful": pa.bool_(),
    }
)
_FEW_RUNS = 16


class Names:
    """Names of the numbers in native columns: one array per column, shared by all batches."""

    def __init__(self, names: Mapping[str, Sequence[str]], disks: Sequence[str]) -> None:
        self._texts = {
            name: pa.array(values, pa.string())
            for name, values in {**names, "disks": disks}.items()
        }

    def batch(self, columns: Mapping[str, bytes]) -> pa.RecordBatch:
        """Convert a native batch to rows, with names for numbers and null for missing values."""
        rows = len(columns["copy"])

        def column(name: str, kind: pa.DataType) -> pa.Array:
            return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(columns[name])])

        def known(array: pa.Array) -> pa.Array:
            return pc.if_else(pc.less(array, 0), pa.scalar(None, array.type), array)

        def text(name: str, texts: str) -> pa.Array:
            return pa.DictionaryArray.from_arrays(
                known(column(name, pa.int32())), self._texts[texts]
            )

        return pa.record_batch(
            [
                column("event", pa.uint64()),
                column("time_ns", pa.uint64()),
                text("interval", "intervals"),
                text("disk", "disks"),
                column("offset", pa.uint64()),
                column("length", pa.uint64()),
                text("structure", "structures"),
                text("home", "structures"),
                known(column("home_offset", pa.int64())),
                text("cause", "causes"),
                column("atime_alone", pa.uint8()).cast(pa.bool_()),
                known(column("inode", pa.int64())),
                column("tree", pa.uint64()),
                text("path", "paths"),
                known(column("transaction", pa.int64())),
                column("copy", pa.uint8()),
                column("doubtful", pa.uint8()).cast(pa.bool_()),
            ],
            schema=SCHEMA,
        )


def parts(batch: pa.RecordBatch, column: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose text column holds one of `names`. Contiguous rows, such as those of a
    phase, are not copied."""
    texts = batch.column(column)
    numbers = pc.index_in(pa.array(list(names), pa.string()), texts.dictionary)
    is_chosen = pc.is_in(texts.indices, value_set=numbers.drop_null())
    runs = pc.run_end_encode(is_chosen)
    if len(runs.values) > _FEW_RUNS:
        yield batch.filter(is_chosen)
        return
    begin = 0
    for end, is_run in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        if is_run:
            yield batch.slice(begin, end - begin)
        begin = end
