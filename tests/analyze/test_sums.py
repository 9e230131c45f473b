"""Groups are those of Arrow's own group_by."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fscost.analyze.sums import Sum, grouped

AGGREGATES = [("length", "sum"), ("time", "min"), ("time", "max")]
SMALL = st.integers(0, 3) | st.none()
LARGE = st.sampled_from([-(1 << 63), -1, 0, 1 << 40, (1 << 63) - 1]) | st.none()
FLAG, TEXT = st.booleans() | st.none(), st.sampled_from(["a", "b"]) | st.none()
ROWS = st.lists(st.tuples(SMALL, SMALL, LARGE, LARGE, FLAG, TEXT, LARGE, st.integers(0, 1 << 50)))
COLUMNS = {
    "few": pa.int32(),
    "copy": pa.uint8(),
    "transaction": pa.int64(),
    "offset": pa.int64(),
    "is_atime": pa.bool_(),
    "path": pa.string(),
    "time": pa.int64(),
    "length": pa.uint64(),
}


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    named = zip(COLUMNS.items(), columns, strict=True)
    return pa.table({name: pa.array(values, kind) for (name, kind), values in named})


def unordered(sums: pa.Table) -> list[dict[str, Any]]:
    return sorted(sums.to_pylist(), key=repr)


@given(ROWS, st.integers(1, 6), st.integers(0, 20))
def test_groups_are_those_of_arrow(
    rows: list[tuple[object, ...]], keys_count: int, split: int
) -> None:
    whole = table(rows)
    whole = pa.concat_tables([whole.slice(0, split), whole.slice(split)])
    keys = list(COLUMNS)[:keys_count]
    arrow = whole.group_by(keys, use_threads=False).aggregate(AGGREGATES)
    found = grouped(whole, keys, AGGREGATES)
    assert found.schema.types == [arrow.schema.field(name).type for name in found.column_names]
    assert unordered(found) == unordered(arrow.select(found.column_names))
    keys_of = [tuple(row[key] for key in keys) for row in whole.to_pylist()]
    assert [tuple(row[key] for key in keys) for row in found.to_pylist()] == list(
        dict.fromkeys(keys_of)
    )


@given(ROWS, st.integers(0, 20))
def test_batches_add_up(rows: list[tuple[object, ...]], split: int) -> None:
    whole = table(rows).combine_chunks()
    keys = ["few", "offset"]
    collected = Sum(keys, AGGREGATES)
    for part in (whole.slice(0, split), whole.slice(split)):
        for batch in part.to_batches():
            collected.add(batch)
    found = collected.table()
    if not rows:
        assert found is None
        return
    assert found is not None
    arrow = whole.group_by(keys, use_threads=False).aggregate(AGGREGATES)
    assert unordered(found) == unordered(arrow.select(found.column_names))
