"""Completion times of a cell's requests by its disks' models, as columns beside the recorded ones.

The disk server writes the file (crates/device/src/timing/completions.rs): three 64-bit numbers for
each request of a disk that has a model, in the order of their replies.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from fscost.errors import InputError

_NUMBERS = 3
FIELDS = (pa.field("latency_ns", pa.uint64()), pa.field("late_ns", pa.uint64()))
"""Time from submission to the model's completion, and from there until the reply was sent; null for
a disk without a model."""


class Completions:
    """Completions of one recording."""

    def __init__(self, path: Path) -> None:
        try:
            numbers = np.fromfile(path, "<u8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", "run the cell again") from error
        if len(numbers) % _NUMBERS:
            raise InputError(f"{path} ends inside a completion", "run the cell again")
        table = numbers.reshape(-1, _NUMBERS)
        table = table[np.argsort(table[:, 0])]
        self._request, self._at_ns, self._sent_ns = (table[:, number] for number in range(_NUMBERS))

    def pairs(self) -> bytes:
        """Return each request's number and the time at which its model completed it, in the form
        that the replay takes."""
        return np.stack([self._request, self._at_ns], axis=1).astype("<u8").tobytes()

    def schema(self, recorded: pa.Schema) -> pa.Schema:
        """Return the columns of `recorded` followed by those of completions."""
        return pa.schema([*recorded, *FIELDS])

    def beside(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return a batch with the columns of completions added. Its first request is number `first`
        of the recording."""
        numbers = np.arange(first, first + batch.num_rows, dtype=np.uint64)
        is_missing = ~np.isin(numbers, self._request)
        place = np.searchsorted(self._request, numbers[~is_missing])
        at_ns, sent_ns = np.zeros((2, batch.num_rows), np.uint64)
        at_ns[~is_missing], sent_ns[~is_missing] = self._at_ns[place], self._sent_ns[place]
        submit_ns = batch.column("submit_ns").to_numpy()
        columns = (at_ns - submit_ns, sent_ns - at_ns)
        arrays = [pa.array(column, pa.uint64(), mask=is_missing) for column in columns]
        schema = self.schema(batch.schema)
        return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=schema)
