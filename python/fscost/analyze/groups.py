"""Sums of bytes by the requested grouping."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fscost.analyze.explain import Explanation
from fscost.analyze.sums import Sum, grouped

DATA, JOURNAL, METADATA = "data", "journal", "metadata"
NO_FILE = "(of no single file)"
NO_TRANSACTION = "(of no transaction)"
_DIGITS = 20
"""Digits of the largest number of 64 bits."""
TIME_BINS = 20
OF_DIRECTORIES = ("directory", "structure")
"""Keys of the sums by directory, which only the native module computes: from batches, they are
computed from sums by path, of which there are many more."""
_OWN_BLOCKS = ("directory", "directory_index")


class By(StrEnum):
    """Groupings of bytes."""

    STRUCTURE = "structure"
    CAUSE = "cause"
    FILE = "file"
    DIRECTORY = "directory"
    EXTENSION = "extension"
    PHASE = "phase"
    TIME = "time"
    TRANSACTION = "transaction"


@dataclass(frozen=True)
class Group:
    """A group of bytes with one name. `parts` breaks it down: by cause for a structure, else into
    data, metadata and journal."""

    name: str
    bytes: int
    parts: dict[str, int]


@dataclass(frozen=True)
class Rest:
    """Sum of the groups that are not listed."""

    count: int
    bytes: int
    parts: dict[str, int]


def total_bytes(explanation: Explanation) -> int:
    """Return the number of bytes written."""
    return int(pc.sum(explanation.sums("structure")["length_sum"]).as_py() or 0)


def unknown_bytes(explanation: Explanation) -> int:
    """Return the number of bytes whose structure is unknown."""
    sums = rows(explanation.sums("structure"))
    return sum(length for structure, length in sums if structure == "unknown")


def doubtful_bytes(explanation: Explanation) -> int:
    """Return the number of bytes whose owner the disk does not identify with certainty."""
    return sum(length for is_doubtful, length in rows(explanation.sums("doubtful")) if is_doubtful)


def kinds(explanation: Explanation) -> Counter[str]:
    """Sum the bytes of file data, of the journal or log, and of other metadata."""
    found: Counter[str] = Counter()
    for structure, length in rows(explanation.sums("structure")):
        found[kind(explanation, structure)] += length
    return found


def kind(explanation: Explanation, structure: str) -> str:
    """Return the kind of a structure: data, journal or metadata."""
    if structure == "file_data":
        return DATA
    return JOURNAL if structure in explanation.journal_structures else METADATA


def groups(explanation: Explanation, by: By) -> list[Group]:
    """Return all groups, the largest first; phases and times in chronological order."""
    return largest(explanation, by, None)[0]


def largest(explanation: Explanation, by: By, top: int | None) -> tuple[list[Group], Rest | None]:
    """Return the first `top` groups, and the rest."""
    if by is By.TIME:
        sums, name = _slices(explanation)
    elif by is By.DIRECTORY and explanation.native is not None:
        sums = explanation.sums(*OF_DIRECTORIES)
        name = _filled(sums["directory"], NO_FILE)
    else:
        sums = explanation.sums(*keys(by))
        name = _names(sums, by)
    part = (
        _texts(sums["cause"])
        if by is By.STRUCTURE
        else mapped(sums["structure"], lambda structure: kind(explanation, str(structure)))
    )
    order = pa.array(explanation.phases, pa.string()) if by is By.PHASE else None
    if by is By.TIME:
        order = name.unique().sort()
    return _collected(name, part, sums["length_sum"].combine_chunks(), order, top)


def keys(by: By) -> tuple[str, ...]:
    """Return the keys of the sum that this grouping needs."""
    if by is By.STRUCTURE:
        return ("structure", "home_structure", "cause")
    if by is By.DIRECTORY:
        return ("path", "structure", "home_structure")
    if by in (By.CAUSE, By.PHASE, By.TRANSACTION):
        return (by.value, "structure")
    return ("path", "structure") if by in (By.FILE, By.EXTENSION) else ("structure",)


def _names(sums: pa.Table, by: By) -> pa.Array:
    if by is By.STRUCTURE:
        home = pc.binary_join_element_wise(
            _texts(sums["structure"]), _texts(sums["home_structure"]), " of "
        )
        return pc.coalesce(home, _texts(sums["structure"]))
    if by is By.FILE:
        return _texts(sums["path"]).fill_null(NO_FILE)
    if by is By.EXTENSION:
        return mapped(sums["path"], extension)
    if by is By.DIRECTORY:
        return directories(sums)
    if by is By.TRANSACTION:
        return _column(sums["transaction"]).cast(pa.string()).fill_null(NO_TRANSACTION)
    return _texts(sums[by.value])


def directories(sums: pa.Table) -> pa.Array:
    """Return the directory that holds each row's file. A directory's own blocks belong to the
    directory itself."""
    what = pc.coalesce(_texts(sums["home_structure"]), _texts(sums["structure"]))
    own = pc.is_in(what, value_set=pa.array(_OWN_BLOCKS))
    # Directory names are computed once per path, because rows are many and paths few; and they are
    # compared once per directory, because paths are many and directories few.
    paths = _encoded(sums["path"])
    above = parents(paths.dictionary).dictionary_encode()
    own_paths = paths.indices.filter(own).unique().drop_null()
    own_texts = paths.dictionary.take(own_paths)
    names = pa.concat_arrays([above.dictionary, own_texts, pa.array([NO_FILE])]).dictionary_encode()
    of_above = names.indices.slice(0, len(above.dictionary)).take(above.indices)
    of_own = names.indices.slice(len(above.dictionary), len(own_paths))
    numbers = pc.if_else(
        own,
        of_own.take(pc.index_in(paths.indices, value_set=own_paths)),
        of_above.take(paths.indices),
    )
    return pa.DictionaryArray.from_arrays(numbers.fill_null(names.indices[-1]), names.dictionary)


def parents(paths: pa.Array) -> pa.Array:
    """Return the directory that holds each path."""
    first = pc.list_element(pc.split_pattern(paths, "/", max_splits=1, reverse=True), 0)
    has_folder = pc.and_(pc.match_substring(paths, "/"), pc.not_equal(first, ""))
    return pc.if_else(has_folder, first, "/")


def extension(path: str | None) -> str:
    """Return the extension, such as `.txt`. A name whose only dot is the first character has
    none."""
    if path is None:
        return NO_FILE
    stem, dot, last = path.rpartition("/")[2].rpartition(".")
    return dot + last if stem.strip(".") and last else "(no extension)"


def _slices(explanation: Explanation) -> tuple[pa.Table, pa.Array]:
    """Sum bytes by slices of equal length between the first and the last write."""
    bounds = Sum(["structure"], [("time_ns", "min"), ("time_ns", "max")])
    explanation.prepare([], bounds)
    found = bounds.table()
    begin, end = 0, 0
    if found is not None:
        begin, end = pc.min(found["time_ns_min"]).as_py(), pc.max(found["time_ns_max"]).as_py()
    width = max(1, -(-(end + 1 - begin) // TIME_BINS))
    sliced = _Sliced(begin, width)
    explanation.prepare([], sliced)
    sums = sliced.table()
    digits = len(str((end - begin) // 10**9)) + 4
    return sums, mapped(
        sums["slice"], lambda number: f"{(begin + int(number or 0) * width) / 1e9:{digits}.3f} s"
    )


class _Sliced:
    """Sum of bytes by slice and structure."""

    def __init__(self, begin_ns: int, width_ns: int) -> None:
        self._begin = pa.scalar(begin_ns, pa.uint64())
        self._width = pa.scalar(width_ns, pa.uint64())
        self._sum = Sum(["slice", "structure"])

    def add(self, batch: pa.RecordBatch) -> None:
        bins = pc.divide(pc.subtract(batch.column("time_ns"), self._begin), self._width)
        columns = {name: batch.column(name) for name in ("structure", "length")}
        self._sum.add(pa.record_batch({"slice": bins, **columns}))

    def table(self) -> pa.Table:
        found = self._sum.table()
        if found is None:
            types = {"slice": pa.uint64(), "structure": pa.string(), "length_sum": pa.uint64()}
            return pa.schema(types).empty_table()
        return found


def rows(sums: pa.Table) -> list[tuple[Any, ...]]:
    """Return keys and bytes, row by row."""
    return list(zip(*(column.to_pylist() for column in sums.columns), strict=True))


def _column(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _texts(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return _column(column).cast(pa.string())


def _encoded(column: pa.ChunkedArray | pa.Array) -> pa.DictionaryArray:
    """Encode a column with a dictionary of only the values that occur."""
    array = _column(column)
    if not pa.types.is_dictionary(array.type):
        return array.dictionary_encode()
    used = array.indices.unique().drop_null()
    numbers = pc.index_in(array.indices, value_set=used)
    return pa.DictionaryArray.from_arrays(numbers, array.dictionary.take(used))


def _filled(column: pa.ChunkedArray, name: str) -> pa.DictionaryArray:
    """Replace missing values of a column of names, which stays encoded."""
    encoded = _column(column)
    names = pa.concat_arrays([encoded.dictionary, pa.array([name])])
    numbers = encoded.indices.fill_null(len(encoded.dictionary))
    return pa.DictionaryArray.from_arrays(numbers, names)


def among(column: pa.ChunkedArray, names: Sequence[str]) -> pa.Array:
    """Return whether each value of a column of names is one of these."""
    encoded = _column(column)
    return pc.is_in(encoded.dictionary, value_set=pa.array(names)).take(encoded.indices)


def mapped(column: pa.ChunkedArray | pa.Array, name: Callable[[Any], str]) -> pa.Array:
    """Map each value by `name`, which is called once per distinct value."""
    encoded = _encoded(column)
    texts = [name(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices).fill_null(name(None))


def _collected(
    name: pa.Array, part: pa.Array, length: pa.Array, order: pa.Array | None, top: int | None
) -> tuple[list[Group], Rest | None]:
    # Numbers are far faster to group by than texts.
    names, kinds_of = _encoded(name), _encoded(part)
    parts = pa.table({"name": names.indices, "part": kinds_of.indices, "length": length})
    parts = grouped(parts, ["name", "part"], [("length", "sum")])
    totals = grouped(parts, ["name"], [("length_sum", "sum")])
    texts = names.dictionary.take(totals["name"])
    totals = totals.append_column("text", texts)
    if order is None:
        # Ties of numbers are in the order of the numbers: 6, 10, 100.
        padded = pc.utf8_lpad(texts, _DIGITS, "0")
        tie = pc.if_else(pc.utf8_is_digit(texts), padded, texts)
        totals = totals.append_column("tie", tie)
        totals = totals.sort_by([("length_sum_sum", "descending"), ("tie", "ascending")])
    else:
        totals = totals.take(pc.sort_indices(pc.index_in(totals["text"], value_set=order)))
    part_texts = kinds_of.dictionary.to_pylist()
    shown = totals if top is None else totals.slice(0, top)
    is_shown = pc.is_in(parts["name"], value_set=_column(shown["name"]))
    of: dict[int, Counter[str]] = {number: Counter() for number in shown["name"].to_pylist()}
    for row in parts.filter(is_shown).to_pylist():
        of[row["name"]][part_texts[row["part"]]] = row["length_sum"]
    found = [
        Group(text, counts.total(), dict(counts.most_common()))
        for text, counts in zip(shown["text"].to_pylist(), of.values(), strict=True)
    ]
    if top is None or totals.num_rows <= top:
        return found, None
    others = grouped(parts.filter(pc.invert(is_shown)), ["part"], [("length_sum", "sum")])
    left = Counter(
        {part_texts[each["part"]]: each["length_sum_sum"] for each in others.to_pylist()}
    )
    return found, Rest(totals.num_rows - top, left.total(), dict(left.most_common()))
