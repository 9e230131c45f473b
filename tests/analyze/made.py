"""Hand-made tables and logs."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fscost.analyze.explain import Explanation, Mark
from fscost.analyze.rows import SCHEMA

BLOCK = 4096
SECTOR = 512
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
LOG_MAGIC = 0x6A736677736872
S = 10**9
JOURNAL = frozenset(
    {
        "journal_descriptor",
        "journal_copy",
        "journal_commit",
        "journal_superblock",
        "log",
        "log_tree",
    }
)
_DEFAULTS: dict[str, Any] = {
    "phase": "work",
    "disk": "main",
    "offset": 0,
    "length": BLOCK,
    "cause": "data",
    "tree": 0,
    "copy": 0,
    "atime_alone": False,
    "doubtful": False,
}


def row(structure: str, home: str | None = None, **columns: Any) -> dict[str, Any]:
    """Return a row. It comes a second after the previous row, unless `time_ns` is given."""
    return {"structure": structure, "home_structure": home, **columns}


def explanation(
    rows: Sequence[dict[str, Any]],
    family: str = "ext",
    marks: Sequence[Mark] = (),
    batches: int = 1,
    is_timed: bool = True,
) -> Explanation:
    """Return an explanation of these rows, in this number of batches."""
    whole = [
        {**_DEFAULTS, "event": number, "time_ns": (number + 1) * S, **each}
        for number, each in enumerate(rows)
    ]
    columns = {name: [each.get(name) for each in whole] for name in SCHEMA.names}
    arrays = [
        pa.array(
            columns[field.name],
            field.type.value_type if pa.types.is_dictionary(field.type) else field.type,
        )
        for field in SCHEMA
    ]
    arrays = [
        array.dictionary_encode() if pa.types.is_dictionary(field.type) else array
        for array, field in zip(arrays, SCHEMA, strict=True)
    ]
    table = pa.table(arrays, schema=SCHEMA)
    size = max(1, -(-len(rows) // batches))
    chunks = pa.Table.from_batches(table.to_batches(max_chunksize=size), schema=SCHEMA)
    phases = list(dict.fromkeys(each["phase"] for each in whole))
    return of_table(chunks, {"main": family}, phases, JOURNAL, marks=marks, is_timed=is_timed)


def of_table(
    table: pa.Table,
    families: Mapping[str, str | None],
    phases: Sequence[str],
    journal_structures: Iterable[str],
    **others: Any,
) -> Explanation:
    """Return an explanation whose rows are those of a table."""
    whole, structures = table.unify_dictionaries(), frozenset(journal_structures)
    return Explanation(lambda: iter(whole.to_batches()), families, phases, structures, **others)


def commit(
    number: int, homes: Sequence[tuple[str, int]], at_ns: int, **columns: Any
) -> list[dict[str, Any]]:
    """Return the rows of an ext transaction: descriptor, a copy of each home (structure and block),
    and the commit block a millisecond later."""
    common = {"transaction": number, "cause": "log", "time_ns": at_ns}
    copies = [
        row(
            "journal_copy",
            structure,
            home_offset=block * BLOCK,
            **{**common, "cause": "allocation", **columns},
        )
        for structure, block in homes
    ]
    return [
        row("journal_descriptor", **common),
        *copies,
        row("journal_commit", **{**common, "time_ns": at_ns + 10**6}),
    ]


def changes(before: bytes, after: bytes) -> list[tuple[int, bytes]]:
    """Return each changed block with its offset."""
    offsets = range(0, len(after), BLOCK)
    return [
        (o, after[o : o + BLOCK]) for o in offsets if before[o : o + BLOCK] != after[o : o + BLOCK]
    ]


def entry(offset: int, content: bytes, flags: int = 0, text: bytes = b"") -> bytes:
    head = struct.pack("<QQQQ", offset // SECTOR, len(content) // SECTOR, flags, len(text)) + text
    return head.ljust(SECTOR, b"\0") + content


def log_of(phases: Mapping[str, Sequence[tuple[int, bytes] | tuple[int, bytes, int]]]) -> bytes:
    """Return a dm-log-writes log. Each phase has its writes: an offset, the content and,
    optionally, flags."""
    entries = [
        e
        for name, writes in phases.items()
        for e in (entry(0, b"", MARK, name.encode()), *(entry(*write) for write in writes))
    ]
    return struct.pack("<QQQI", LOG_MAGIC, 1, len(entries), SECTOR).ljust(SECTOR, b"\0") + b"".join(
        entries
    )
