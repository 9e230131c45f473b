"""Sums over rows that never fit in memory together: each batch is summed, and then the sums of the
batches."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MOST_PARTIAL_ROWS = 1 << 18
"""Maximum number of partial sums that wait to be merged. It must exceed the number of groups, or
waiting saves nothing."""

Batches = Callable[[], Iterator[pa.RecordBatch]]
Aggregate = tuple[str, str]
"""A column, and `sum`, `min` or `max`, which also combine partial results."""


_MOST_CODES = 1 << 62
_FEW_CODES = 1 << 20
"""Up to this many codes, a table finds those that occur faster than a sort does."""
_REDUCERS: dict[str, np.ufunc] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Collector(Protocol):
    """Collector that receives all rows in one pass."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""


class Sum:
    """A `group_by` over all rows. The result has the keys and a column `<column>_<aggregate>` for
    each aggregate; text columns stay dictionaries."""

    def __init__(
        self, keys: Sequence[str], aggregates: Sequence[Aggregate] = (("length", "sum"),)
    ) -> None:
        self._keys = list(dict.fromkeys(keys))
        self._aggregates = list(aggregates)
        self._names = [f"{column}_{how}" for column, how in aggregates]
        self._dictionaries: dict[str, pa.Array] = {}
        self._partial: list[pa.Table] = []
        self._settled = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        columns = {}
        for name in dict.fromkeys([*self._keys, *(column for column, _ in self._aggregates)]):
            column = batch.column(name)
            if pa.types.is_dictionary(column.type):
                # All batches have the same dictionary, and its numbers are far faster to
                # group by than texts.
                self._dictionaries[name] = column.dictionary
                column = column.indices
            columns[name] = column
        self._partial.append(self._summed(pa.table(columns), self._aggregates))
        waiting = sum(table.num_rows for table in self._partial[1:])
        if waiting > max(_MOST_PARTIAL_ROWS, self._settled // 2):
            self._settle()

    def table(self) -> pa.Table | None:
        """Return the sums so far; None if there was no batch."""
        if not self._partial:
            return None
        self._settle()
        table = self._partial[0]
        for place, name in enumerate(self._keys):
            if name in self._dictionaries:
                numbers = table[name].combine_chunks()
                texts = pa.DictionaryArray.from_arrays(numbers, self._dictionaries[name])
                table = table.set_column(place, name, texts)
        return table

    def _settle(self) -> None:
        if len(self._partial) > 1:
            hows = (how for _, how in self._aggregates)
            again = list(zip(self._names, hows, strict=True))
            self._partial = [self._summed(pa.concat_tables(self._partial), again)]
        self._settled = self._partial[0].num_rows

    def _summed(self, table: pa.Table, aggregates: Sequence[Aggregate]) -> pa.Table:
        """Group a table. Keys come first and names are constant, independent of the version of
        Arrow."""
        return grouped(table, self._keys, aggregates).rename_columns([*self._keys, *self._names])


def grouped(table: pa.Table, keys: Sequence[str], aggregates: Sequence[Aggregate]) -> pa.Table:
    """Group a table as `pyarrow.Table.group_by` does, several times faster: by sorting one number
    for each row. The groups are in the order of their first rows. The columns are the keys
    (numbers, bools, texts or dictionaries), and `<column>_<aggregate>` for each aggregate, of
    numbers."""
    codes = _codes([table[key] for key in keys])
    # Rows of one file are near each other, and for numbers of 16 bits numpy's sort is linear.
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1)) if len(codes) else order
    rows = order[begins]
    chronological = np.argsort(rows, kind="stable")
    found = {key: table[key].take(pa.array(rows[chronological])) for key in keys}
    for column, how in aggregates:
        reduced = _reduced(table[column], how, order, begins)
        found[f"{column}_{how}"] = reduced.take(pa.array(chronological))
    return pa.table(found)


def _codes(columns: Sequence[pa.ChunkedArray]) -> NDArray[Any]:
    """Return one number for each row: equal for rows that are equal in all columns."""
    codes, span = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values, values_span = _from_zero(column)
        if span * values_span > _MOST_CODES:
            codes, span = _dense(codes, span)
        codes, span = codes * values_span + values, span * values_span
        if span <= _FEW_CODES:
            codes, span = _dense(codes, span)
    return codes.astype(np.uint16) if span <= 1 << 16 else codes


def _dense(codes: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], int]:
    """Renumber the codes, which are below `span`, without gaps; return how many there are, too."""
    if span > _FEW_CODES:
        distinct, found = np.unique(codes, return_inverse=True)
        return found, max(1, len(distinct))
    occurs = np.zeros(span, np.bool_)
    occurs[codes] = True
    numbers = np.cumsum(occurs)
    return numbers[codes] - 1, max(1, int(numbers[-1]))


def _from_zero(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], int]:
    """Map the column's values to small numbers; return these, and a number above them. 0 stands for
    a missing value."""
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([column.combine_chunks().indices])
    is_valid = np.asarray(column.is_valid()) if column.null_count else None
    values = _values(column)
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if highest - lowest >= _MOST_CODES >> 20:
        distinct, found = np.unique(values, return_inverse=True)
        lowest, highest = 0, len(distinct)
    else:
        found = (values - values.dtype.type(lowest)).astype(np.int64)
    found = found + 1 if is_valid is None else np.where(is_valid, found + 1, 0)
    return found, highest - lowest + 2


def _reduced(
    column: pa.ChunkedArray, how: str, order: NDArray[np.int64], begins: NDArray[np.int64]
) -> pa.Array:
    """Aggregate the column in each group; missing values do not count."""
    values, mask = _values(column), None
    if how == "sum":
        values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    if not len(values):
        return pa.array(values)
    if column.null_count:
        is_valid = np.asarray(column.is_valid())
        limits = np.iinfo(values.dtype)
        neutral = {"sum": 0, "min": limits.max, "max": limits.min}[how]
        values = np.where(is_valid, values, values.dtype.type(neutral))
        mask = ~np.logical_or.reduceat(is_valid[order], begins)
    return pa.array(_REDUCERS[how].reduceat(values[order], begins), mask=mask)


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Convert a column of numbers or bools to numbers; missing values are 0."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return np.asarray(column.fill_null(0).to_numpy() if column.null_count else column.to_numpy())


def largest_row(table: pa.Table, *columns: str) -> dict[str, Any]:
    """Row with the largest value of the first column; the other columns break ties."""
    order = [(name, "descending") for name in columns]
    [row] = table.take(pc.select_k_unstable(table, k=1, sort_keys=order)).to_pylist()
    return dict(row)
