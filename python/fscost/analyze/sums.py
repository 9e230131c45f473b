"""Sums over rows that never fit in memory together: each batch is summed, and then the sums of the
batches."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.acero  # the first group_by would import it later, while everything waits
import pyarrow.compute as pc

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
        # One thread, because each additional one would build its own table of all groups.
        groups = table.group_by(self._keys, use_threads=False)
        found = groups.aggregate(list(aggregates))
        others = [name for name in found.column_names if name not in self._keys]
        return found.select([*self._keys, *others]).rename_columns([*self._keys, *self._names])


def largest_row(table: pa.Table, *columns: str) -> dict[str, Any]:
    """Row with the largest value of the first column; the other columns break ties."""
    order = [(name, "descending") for name in columns]
    [row] = table.take(pc.select_k_unstable(table, k=1, sort_keys=order)).to_pylist()
    return dict(row)
