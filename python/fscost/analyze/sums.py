"""Sums over rows that never fit in memory together: each batch is summed, and then the sums of the
batches."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.acero  # the first group_by would import it later, while everything waits

_MOST_PARTIAL_ROWS = 1 << 18
"""Maximum number of partial sums that wait to be merged. It must exceed the number of groups, or
waiting saves nothing."""

Batches = Callable[[], Iterator[pa.RecordBatch]]
Aggregate = tuple[str, str]
"""A column, and `sum`, `min` or `max`, which also combine partial results."""


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
        # One thread, because each additional one would build its own table of all groups.
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
        """Return the sums so far; None if there was no batch."""
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
        again = [(name, how) for name, (_, how) in zip(self._names, self._aggregates, strict=True)]
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
        """Order the columns with keys first and constant names, independent of the version of
        Arrow."""
        found = [name for name in table.column_names if name not in self._keys]
        return table.select([*self._keys, *found]).rename_columns([*self._keys, *self._names])
