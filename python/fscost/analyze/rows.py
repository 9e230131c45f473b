"""Columns of the table of rows, and selection of rows."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
        "file_offset": pa.int64(),
        "transaction": pa.int64(),
        "copy": pa.uint8(),
        "doubtful": pa.bool_(),
    }
)
DIRECTORY = pa.field("directory", _TEXT)
"""Column of sums alone: the directory that holds the file, or to which its own blocks belong."""
_FEW_RUNS = 16


def numbers(column: pa.Array) -> NDArray[np.int64]:
    """Convert a column to numbers; missing values are -1."""
    found = column.cast(pa.int64(), safe=False).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def parts(batch: pa.RecordBatch, column: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose text column holds one of `names`. Contiguous rows, such as those of a
    phase, are not copied."""
    texts = batch.column(column)
    wanted = pc.index_in(pa.array(list(names), pa.string()), texts.dictionary)
    is_chosen = pc.is_in(texts.indices, value_set=wanted.drop_null())
    runs = pc.run_end_encode(is_chosen)
    if len(runs.values) > _FEW_RUNS:
        yield batch.filter(is_chosen)
        return
    begin = 0
    for end, is_run in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        if is_run:
            yield batch.slice(begin, end - begin)
        begin = end
