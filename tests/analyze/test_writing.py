"""The table as a file, written while other results are computed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fscost.analyze import Explanation
from fscost.analyze.writing import writing
from fscost.errors import InputError

from .made import explanation, row

ROWS = [row("file_data", path=f"/d/{number}") for number in range(20)]


def test_the_file_has_every_row_once_the_block_was_told_how_many(tmp_path: Path) -> None:
    made = explanation(ROWS)
    with writing(made, tmp_path / "rows") as written:
        assert written() == len(ROWS)
    assert pq.read_table(tmp_path / "rows").to_pylist() == made.table.to_pylist()


def test_no_file_stays_of_a_block_that_fails_meanwhile(tmp_path: Path) -> None:
    made = explanation(ROWS)

    def batches() -> Iterator[pa.RecordBatch]:
        """Yield far more batches than the test waits for."""
        for _ in range(10_000):
            yield from made.batches()

    def fail(endless: Explanation) -> None:
        with writing(endless, tmp_path / "rows"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(replace(made, batches=batches))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_told_to_who_waits(tmp_path: Path) -> None:
    (tmp_path / "rows").touch()
    with (
        writing(explanation(ROWS), tmp_path / "rows") as written,
        pytest.raises(InputError, match="rows exists"),
    ):
        written()
