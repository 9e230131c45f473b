"""The rows as a Parquet file, written while other things are learnt from them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fscost import capture, files
from fscost.analyze.explain import Explanation
from fscost.analyze.rows import SCHEMA


class _AbandonedError(Exception):
    """Ends the writing; nobody waits for its result."""


@contextmanager
def writing(explanation: Explanation, path: Path) -> Iterator[Callable[[], int]]:
    """Write the rows on another thread, made whole or not at all, and never over another file. What
    this gives waits for the end, and returns how many rows there are; an exception in the block
    ends the writing."""
    is_abandoned = threading.Event()
    with ThreadPoolExecutor(1, "write-parquet") as pool:
        rows = pool.submit(_write, explanation, path, is_abandoned)
        try:
            yield rows.result
        except BaseException:
            is_abandoned.set()
            raise


def write_parquet(explanation: Explanation, path: Path) -> int:
    """The same on this thread."""
    return _write(explanation, path, threading.Event())


def _write(explanation: Explanation, path: Path, is_abandoned: threading.Event) -> int:
    rows = 0
    with (
        files.creating(path) as file,
        pq.ParquetWriter(file, SCHEMA, compression=capture.COMPRESSION) as writer,
    ):
        for batch in explanation.batches():
            if is_abandoned.is_set():
                raise _AbandonedError
            writer.write_batch(_with_own_paths(batch))
            rows += batch.num_rows
    return rows


def _with_own_paths(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A Parquet row group holds its whole dictionary: that of this batch's paths, not of all."""
    place = batch.schema.get_field_index("path")
    paths = batch.column(place).cast(pa.string()).dictionary_encode()
    return pa.RecordBatch.from_arrays(
        [*batch.columns[:place], paths, *batch.columns[place + 1 :]], schema=batch.schema
    )
