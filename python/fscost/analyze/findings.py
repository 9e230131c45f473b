"""What the table says, in words: only what follows from its sums, and only what is large enough to matter."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from fscost.analyze.explain import Explanation
from fscost.analyze.groups import DATA, JOURNAL, METADATA, kinds, total_bytes, unknown_bytes

WORTH_SAYING = 0.01
UNKNOWN_ALLOWED = 0.001


def findings(explanation: Explanation) -> list[str]:
    """One sentence each."""
    total = total_bytes(explanation)
    return list(_findings(explanation, total)) if total else []


def _findings(explanation: Explanation, total: int) -> Iterator[str]:
    table = explanation.table
    if (unknown := unknown_bytes(explanation)) > UNKNOWN_ALLOWED * total:
        yield f"{_share(unknown, total)} of the bytes are not understood: all that follows may be off by as much"
    alone = _bytes(table, table["atime_alone"])
    if alone >= WORTH_SAYING * total:
        yield f"{_share(alone, total)} of the bytes were access times alone: noatime would have avoided them"
    yield from _proportion(explanation)
    yield from _journal(explanation, total)
    for cause, words in (
        ("unchanged", "of the bytes were metadata, or copies of it in the journal, with nothing changed"),
        (
            "lazy_init",
            "of the bytes were zeros for what mkfs had left for later (ext4: -E lazy_itable_init=0,lazy_journal_init=0 does it in mkfs)",
        ),
    ):
        if (length := _bytes(table, pc.equal(table["cause"], cause))) >= WORTH_SAYING * total:
            yield f"{_share(length, total)} {words}"
    if (further := _bytes(table, pc.greater(table["copy"], 0))) >= WORTH_SAYING * total:
        yield f"{_share(further, total)} of the bytes were second and further copies of the same content (DUP, RAID)"


def _proportion(explanation: Explanation) -> Iterator[str]:
    found = kinds(explanation)
    if found[DATA]:
        metadata, journal = (_ratio(found[kind] / found[DATA]) for kind in (METADATA, JOURNAL))
        yield f"for each byte of file data, {metadata} bytes of metadata and {journal} of journal or log were written"


def _journal(explanation: Explanation, total: int) -> Iterator[str]:
    table = explanation.table
    journal = table.filter(pc.starts_with(table["structure"].cast(pa.string()), "journal_"))
    transactions = pc.count_distinct(journal["transaction"], mode="only_valid").as_py()
    copies = journal.filter(pc.equal(journal["structure"], "journal_copy"))
    copied = _total(copies)
    if transactions and copied:
        text = (
            f"journal: {transactions:,} transaction{'s' if transactions > 1 else ''}; copies of blocks are {_share(copied, total)} of the bytes"
        )
        alone = _bytes(copies, copies["atime_alone"])
        yield text + (f", and {_share(alone, copied)} of the copies hold access times alone" if alone >= WORTH_SAYING * copied else "")


def _total(table: pa.Table) -> int:
    return int(pc.sum(table["length"]).as_py() or 0)


def _bytes(table: pa.Table, chosen: pa.ChunkedArray) -> int:
    return _total(table.filter(chosen))


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def _ratio(value: float) -> str:
    return "less than 0.001" if 0 < value < 0.001 else f"{value:.3g}" if value >= 100 else f"{value:.2g}"
