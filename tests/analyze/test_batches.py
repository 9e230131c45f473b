"""The native explanation can be read any number of times."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fscost import capture
from fscost._native import Explanation, Recording
from fscost.analyze import explain
from fscost.analyze.groups import By, largest
from fscost.analyze.rows import SCHEMA


def rows(explanation: Explanation) -> int:
    return sum(pa.record_batch(batch).num_rows for batch in explanation)


def test_each_iteration_begins_with_the_first_row(recording: Path) -> None:
    explanation = Recording(recording).explain()
    begun = iter(explanation)
    first = pa.record_batch(next(begun))
    assert pa.record_batch(next(iter(explanation))) == first
    assert rows(explanation) == rows(explanation) > 0
    assert first.num_rows + sum(pa.record_batch(b).num_rows for b in begun) == rows(explanation)


def test_batches_have_the_documented_columns(recording: Path) -> None:
    [batch, *_] = Recording(recording).explain()
    assert pa.record_batch(batch).schema == SCHEMA
    # Importing a batch a second time needs no copy and frees nothing twice.
    assert pa.record_batch(batch) == pa.record_batch(batch)
    assert pa.record_batch(batch).validate(full=True) is None


def test_requests_have_the_columns_of_their_table(recording: Path, tmp_path: Path) -> None:
    table = tmp_path / "requests.parquet"
    count, _ = capture.write_requests(recording, table)
    [batch] = capture.requests(recording)
    batch.validate(full=True)
    assert count == batch.num_rows == len(pq.read_table(table)) > 0


@pytest.mark.parametrize("phases", [["before", "mkfs", "mount", "work", "again"], ["work"], []])
def test_sums_are_those_of_the_batches(recording: Path, phases: list[str]) -> None:
    whole = explain(recording)
    [disk] = whole.families
    # The table of rows has no column of directories.
    summed = [name for name in Explanation.summed() if name in SCHEMA.names]
    several = [tuple(summed), *((each,) for each in summed), ("path", "structure", "path")]
    for keys in several:
        native, batches = (
            each.within([name for name in phases if name in whole.phases]).on_disk(disk)
            for each in (whole, replace(whole, native=None))
        )
        found, expected = native.sums(*keys), batches.sums(*keys)
        assert found.schema.types == expected.schema.types
        assert found.to_pylist() == expected.to_pylist()
        assert (found.num_rows > 0) == bool(phases)


@pytest.mark.parametrize("phases", [["before", "mkfs", "mount", "work", "again"], ["work"], []])
def test_sums_by_directory_are_those_of_the_paths(recording: Path, phases: list[str]) -> None:
    whole = explain(recording)
    native, batches = (
        each.within([name for name in phases if name in whole.phases])
        for each in (whole, replace(whole, native=None))
    )
    of_batches = largest(batches, By.DIRECTORY, None)
    assert largest(native, By.DIRECTORY, None) == of_batches
    assert any(group.name.startswith("/") for group in of_batches[0]) == bool(phases)


def test_sums_are_not_by_path_and_directory_at_once(recording: Path) -> None:
    explanation = Recording(recording).explain()
    with pytest.raises(ValueError, match="no sums by path and directory at once"):
        explanation.sums([["path", "directory"]])


def test_sums_by_other_columns_need_batches(recording: Path) -> None:
    explanation = Recording(recording).explain()
    with pytest.raises(ValueError, match="no sums by inode"):
        explanation.sums([["inode"]])
    assert explain(recording).sums("inode", "structure").num_rows > 0
