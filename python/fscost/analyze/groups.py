"""The table, summed by what somebody asks for."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fscost.analyze.explain import Explanation

DATA, JOURNAL, METADATA = "data", "journal", "metadata"
TIME_BINS = 20


class By(StrEnum):
    """What bytes are summed by."""

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
    """Bytes with one name; `parts` says of what they consist: causes for a structure, else data, metadata and journal."""

    name: str
    bytes: int
    parts: dict[str, int]


def total_bytes(explanation: Explanation) -> int:
    """All bytes of the table."""
    return int(pc.sum(explanation.table["length"]).as_py() or 0)


def unknown_bytes(explanation: Explanation) -> int:
    """Bytes of which it is not known what they are."""
    table = explanation.table
    return int(pc.sum(table.filter(pc.equal(table["structure"], "unknown"))["length"]).as_py() or 0)


def kinds(explanation: Explanation) -> Counter[str]:
    """Bytes of file data, of the journal or log, and of other metadata."""
    found: Counter[str] = Counter()
    for structure, length in _sums(explanation.table, "structure"):
        found[_kind(explanation, structure)] += length
    return found


def groups(explanation: Explanation, by: By) -> list[Group]:
    """The largest first; phases and time in their order."""
    if by is By.STRUCTURE:
        sums = _sums(explanation.table, "structure", "home_structure", "cause")
        return _largest_first((f"{structure} of {home}" if home else structure, cause, length) for structure, home, cause, length in sums)
    if by is By.DIRECTORY:
        sums = _sums(explanation.table, "path", "structure", "home_structure")
        return _largest_first(
            (_directory(path, home or structure), _kind(explanation, structure), length) for path, structure, home, length in sums
        )
    table, key, name = _keyed(explanation, by)
    named = ((name(value), _kind(explanation, structure), length) for value, structure, length in _sums(table, key, "structure"))
    if by is By.TIME:
        return _in_order(named)
    found = _largest_first(named)
    return sorted(found, key=lambda group: explanation.phases.index(group.name)) if by is By.PHASE else found


def _keyed(explanation: Explanation, by: By) -> tuple[pa.Table, str, Callable[[object], str]]:
    """The table, its column to sum by, and a value's name."""
    table = explanation.table
    if by in (By.CAUSE, By.PHASE):
        return table, by.value, str
    if by is By.TRANSACTION:
        return table, "transaction", lambda value: "(of no transaction)" if value is None else str(value)
    if by is By.TIME:
        return _binned(table)
    return table, "path", _file if by is By.FILE else _extension


NO_FILE = "(of no single file)"


def _file(path: object) -> str:
    return NO_FILE if path is None else str(path)


def _directory(path: str | None, what: str) -> str:
    """The one that holds the file; a directory's own blocks are its own."""
    if path is None:
        return NO_FILE
    return path if what in ("directory", "directory_index") else str(PurePosixPath(path).parent)


def _extension(path: object) -> str:
    return NO_FILE if path is None else PurePosixPath(str(path)).suffix or "(no extension)"


def _binned(table: pa.Table) -> tuple[pa.Table, str, Callable[[object], str]]:
    """Slices of equal length between the first and the last write."""
    bounds = pc.min_max(table["time_ns"]).as_py()
    begin, end = bounds["min"] or 0, bounds["max"] or 0
    width = max(1, -(-(end + 1 - begin) // TIME_BINS))
    bins = pc.divide(pc.subtract(table["time_ns"], pa.scalar(begin, pa.uint64())), pa.scalar(width, pa.uint64()))
    digits = len(str((end - begin) // 10**9))

    def name(number: object) -> str:
        first = begin + int(str(number)) * width
        return f"{first / 1e9:{digits + 4}.3f} s"

    return table.append_column("slice", bins), "slice", name


def _kind(explanation: Explanation, structure: str) -> str:
    if structure == "file_data":
        return DATA
    return JOURNAL if structure in explanation.journal_structures else METADATA


def _sums(table: pa.Table, *keys: str) -> list[tuple[Any, ...]]:
    summed = table.group_by(list(keys)).aggregate([("length", "sum")])
    columns = [summed[name].to_pylist() for name in (*keys, "length_sum")]
    return list(zip(*columns, strict=True))


def _collected(sums: Iterable[tuple[str, str, int]]) -> list[Group]:
    found: dict[str, Counter[str]] = {}
    for name, part, length in sums:
        found.setdefault(name, Counter())[part] += length
    return [Group(name, parts.total(), dict(parts.most_common())) for name, parts in found.items()]


def _largest_first(sums: Iterable[tuple[str, str, int]]) -> list[Group]:
    return sorted(_collected(sums), key=lambda group: (-group.bytes, group.name))


def _in_order(sums: Iterable[tuple[str, str, int]]) -> list[Group]:
    return sorted(_collected(sums), key=lambda group: float(group.name.split()[0]))
