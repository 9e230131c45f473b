"""Writing of the rows to a Parquet file, while other analyses read them."""

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

NAMED = [column.name for column in SCHEMA if pa.types.is_dictionary(column.type)]
"""Columns with few values. A dictionary of numbers, most of them unique, costs time and space."""


class _AbandonedError(Exception):
    """Signal to stop writing when nobody waits for the result."""


@contextmanager
def writing(explanation: Explanation, path: Path) -> Iterator[Callable[[], int]]:
    """Write the rows on another thread; the file is complete or absent, and never replaces another
    file. The yielded function waits for the end and returns the number of rows. An exception in the
    block stops the writing."""
    is_abandoned = threading.Event()
    with ThreadPoolExecutor(1, "write-parquet") as pool:
        rows = pool.submit(_write, explanation, path, is_abandoned)
        try:
            yield rows.result
        except BaseException:
            is_abandoned.set()
            raise


def _write(explanation: Explanation, path: Path, is_abandoned: threading.Event) -> int:
    rows = 0
    with (
        files.creating(path) as file,
        pq.ParquetWriter(
            file, SCHEMA, compression=capture.COMPRESSION, use_dictionary=NAMED
        ) as writer,
    ):
        for batch in explanation.batches():
            if is_abandoned.is_set():
                raise _AbandonedError
            writer.write_batch(_with_own_paths(batch))
            rows += batch.num_rows
    return rows


def _with_own_paths(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Reduce the path dictionary to this batch's paths, because a Parquet row group stores its
    whole dictionary."""
    place = batch.schema.get_field_index("path")
    paths = batch.column(place)
    used = paths.indices.dictionary_encode()
    own = pa.DictionaryArray.from_arrays(used.indices, paths.dictionary.take(used.dictionary))
    return pa.RecordBatch.from_arrays(
        [*batch.columns[:place], own, *batch.columns[place + 1 :]], schema=batch.schema
    )
