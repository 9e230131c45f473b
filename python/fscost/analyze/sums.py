"""Sums over rows that are never all in memory: each batch is summed, and the sums of the batches
are summed again."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.acero  # By group_by's first use, which would import it, all wait for the sums.

_MOST_PARTIAL_ROWS = 1 << 18
"""Sums of batches that wait before they are summed: more than there are groups, or the waiting
would have been for nothing."""

Batches = Callable[[], Iterator[pa.RecordBatch]]
Aggregate = tuple[str, str]
"""A column, and `sum`, `count`, `min` or `max`."""

_AGAIN = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}


class Collector(Protocol):
    """Something that is learnt from all rows in one pass."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""


class Sum:
    """A `group_by` over all rows. The result has the keys and a column `<column>_<aggregate>` each;
    texts stay dictionaries."""

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
                # Their numbers are shared by all batches (`rows.Names`), and far quicker to sum by
                # than texts.
                self._dictionaries[name] = column.dictionary
                column = column.indices
            columns[name] = column
        # One thread: each more would have a table of all groups of its own.
        self._partial.append(
            self._renamed(
                pa.table(columns)
                .group_by(self._keys, use_threads=False)
                .aggregate(self._aggregates)
            )
        )
        if sum(table.num_rows for table in self._partial[1:]) > max(
            _MOST_PARTIAL_ROWS, self._settled // 2
        ):
            self._settle()

    def table(self) -> pa.Table | None:
        """The sums so far; None where there was no batch."""
        if not self._partial:
            return None
        self._settle()
        table = self._partial[0]
        for place, name in enumerate(self._keys):
            if name in self._dictionaries:
                numbers = table[name].combine_chunks()
                table = table.set_column(
                    place, name, pa.DictionaryArray.from_arrays(numbers, self._dictionaries[name])
                )
        return table

    def _settle(self) -> None:
        again = [
            (name, _AGAIN[how])
            for name, (_, how) in zip(self._names, self._aggregates, strict=True)
        ]
        if len(self._partial) > 1:
            self._partial = [
                self._renamed(
                    pa.concat_tables(self._partial)
                    .group_by(self._keys, use_threads=False)
                    .aggregate(again)
                )
            ]
        self._settled = self._partial[0].num_rows

    def _renamed(self, table: pa.Table) -> pa.Table:
        """Keys first, whatever this version of Arrow puts first, and always the same names."""
        found = [name for name in table.column_names if name not in self._keys]
        return table.select([*self._keys, *found]).rename_columns([*self._keys, *self._names])
