"""Activity of the journal or log: transactions, the blocks they copied and copied again, and the
causes of commits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.ma  # pa.array would import it later, while the report waits
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fscost.analyze.commits import Reasons, Why, reasons
from fscost.analyze.explain import Explanation, NativeSums
from fscost.analyze.rows import numbers
from fscost.analyze.sums import Sum, largest_row

EXT, XFS, BTRFS = "ext", "xfs", "btrfs"
_LOG_OF = {EXT: "journal_", XFS: "log", BTRFS: "log_tree"}
BTRFS_SUPERBLOCK_OFFSET = 64 << 10
_Numbers = NDArray[np.int64]
_SUMMED = ("log", "copies", "checkpoint", "atime_copy", "atime_checkpoint", "items")
_AGGREGATES = (
    *(("first_ns", "min"), ("last_ns", "max"), ("commit_ns", "max")),
    *((name, "sum") for name in _SUMMED),
)


@dataclass(frozen=True)
class Transaction:
    """One transaction. `blocks` counts ext's copies or xfs's log items; it is unknown for btrfs."""

    number: int
    begin_ns: int
    end_ns: int
    bytes: int
    blocks: int
    why: Why


@dataclass(frozen=True)
class Journal:
    """Activity of a journal.

    `family` determines what a transaction is: a transaction of ext's journal, a checkpoint of xfs's
    log, or a commit of btrfs (a new generation of its superblock). For btrfs, `log_syncs` counts
    the fsyncs served by a log tree between commits. `again` counts copies of blocks that an earlier
    transaction had already copied, and `most_again` the copies of the most frequent block. Both are
    None if the recording does not show them.
    """

    family: str
    numbers: _Numbers
    begin_ns: _Numbers
    end_ns: _Numbers
    transaction_bytes: _Numbers
    transaction_blocks: _Numbers
    reasons: Reasons
    bytes: int
    copies: int
    copy_bytes: int
    again: int | None
    again_bytes: int | None
    most_again: int | None
    most_again_structure: str | None
    atime_copy_bytes: int
    checkpoint_bytes: int
    forced_atime_bytes: int
    log_syncs: int = 0
    log_sync_bytes: int = 0

    @property
    def is_untold(self) -> bool:
        """True if the recording has no times, so that the reasons of commits are unknown."""
        return self.reasons.count(Why.UNTOLD) > 0

    @property
    def blocks_median(self) -> float | None:
        """Median of the transactions' blocks; None if there are none."""
        return _median(self.transaction_blocks)

    @property
    def bytes_median(self) -> float | None:
        """Median of the transactions' bytes; None if there are none."""
        return _median(self.transaction_bytes)

    @property
    def forced_bytes(self) -> int | None:
        """Bytes of transactions and log trees that were forced by calls; None if unknown."""
        if self.is_untold:
            return None
        return self.log_sync_bytes + int(
            self.transaction_bytes[self.reasons.why == Why.FORCED.value].sum()
        )

    @property
    def count(self) -> int:
        """Number of transactions."""
        return len(self.numbers)

    @property
    def transactions(self) -> Iterator[Transaction]:
        """Transactions, in order."""
        columns = (
            self.numbers,
            self.begin_ns,
            self.end_ns,
            self.transaction_bytes,
            self.transaction_blocks,
            self.reasons.why,
        )
        lists = (column.tolist() for column in columns)
        for number, begin_ns, end_ns, size, blocks, why in zip(*lists, strict=True):
            yield Transaction(number, begin_ns, end_ns, size, blocks, Why(why))

    def json(self) -> dict[str, Any]:
        """Convert to the printed JSON form."""
        return {
            "family": self.family,
            "transactions": self.count,
            "transaction_blocks_median": self.blocks_median,
            "transaction_blocks_max": _most(self.transaction_blocks),
            "transaction_bytes_median": self.bytes_median,
            "transaction_bytes_max": _most(self.transaction_bytes),
            "journal_write_bytes": self.bytes,
            "copies": self.copies,
            "copy_write_bytes": self.copy_bytes,
            "copies_again": self.again,
            "copies_again_write_bytes": self.again_bytes,
            "copies_of_most_frequent": self.most_again,
            "most_frequent_structure": self.most_again_structure,
            "atime_copy_write_bytes": self.atime_copy_bytes,
            "checkpoint_write_bytes": self.checkpoint_bytes,
            **{
                f"commits_{why}": None if self.is_untold else self.reasons.count(why)
                for why in (Why.FORCED, Why.TIMER, Why.SETTLE, Why.OTHER)
            },
            "commits_inferred": self.reasons.inferred,
            "forced_atime_write_bytes": None if self.is_untold else self.forced_atime_bytes,
            "log_syncs": self.log_syncs,
            "log_sync_write_bytes": self.log_sync_bytes,
        }


def journal(explanation: Explanation) -> Journal | None:
    """Describe the journal's activity; None if there is no journal, or nothing was written to
    it."""
    collector = Journals(explanation)
    explanation.prepare([], collector)
    return collector.result()


class Journals:
    """Collector of the journal's activity, in one pass over all rows."""

    def __init__(self, explanation: Explanation) -> None:
        self._marks, self._is_timed = explanation.marks, explanation.is_timed
        self._family = next((family for family in explanation.families.values() if family), None)
        self._transactions = Sum(["transaction"], _AGGREGATES)
        self._homes = Sum(["home_offset"], [("copies", "sum"), ("structure", "max")])
        self._homes_of: pa.Array | None = None
        self._block_bytes = 0
        self._last_pairs: tuple[int, _Numbers] = (-1, np.array([], np.int64))
        self._log_generation = 0
        self._log_syncs = 0
        self._log_sync_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows."""
        if self._family not in _LOG_OF:
            return
        rows = _Rows(batch, self._family)
        if self._family == BTRFS:
            self._btrfs(rows)
            return
        self._homes_of = rows.homes
        if not self._block_bytes and rows.is_log.any():
            # Descriptors, commits and copies are whole blocks of the journal.
            whole = rows.length[rows.is_log & (rows.transaction >= 0)]
            self._block_bytes = int(np.gcd.reduce(whole)) if self._family == EXT else 1
        is_copy = self._add_kinds(rows, rows.time_ns, rows.time_ns, np.ones_like(rows.length))
        self._count_homes(rows, is_copy & (rows.home_offset >= 0))

    @property
    def is_native(self) -> bool:
        """True if `collect` takes the place of `add`: items of xfs's log need no batches."""
        return self._family == XFS

    def collect(
        self, native: NativeSums, phases: Sequence[str] | None, disks: Sequence[str] | None
    ) -> None:
        """Add the sums of all rows."""
        shares, copied = (pa.record_batch(each) for each in native.logged(phases, disks))
        kinds = _Kinds(shares, XFS)
        first_ns, last_ns, items = (
            numbers(shares.column(name)) for name in ("first_ns", "last_ns", "rows")
        )
        self._homes_of = kinds.homes
        self._add_kinds(kinds, first_ns, last_ns, items)
        self._homes.add(
            _record(**{name: numbers(copied.column(name)) for name in copied.schema.names})
        )

    def _add_kinds(
        self, rows: "_Kinds", first_ns: _Numbers, last_ns: _Numbers, items: _Numbers
    ) -> NDArray[np.bool_]:
        """Add rows, or sums of rows of a kind: `items` rows between two times. Return which are
        copies."""
        is_own = rows.is_log & (rows.transaction >= 0)
        is_copy = is_own & (rows.home >= 0)
        # Blocks that an ext transaction wrote in place carry its number; xfs does not record it.
        is_checkpoint = ~rows.is_log & (
            rows.transaction >= 0 if self._family == EXT else ~rows.is_data
        )
        self._add(
            rows.transaction,
            _Times(first_ns, last_ns, is_own, rows.is_commit),
            log=rows.length * rows.is_log,
            copies=rows.length * is_copy,
            checkpoint=rows.length * is_checkpoint,
            atime_copy=rows.length * (is_copy & rows.atime_alone),
            atime_checkpoint=rows.length * (is_checkpoint & rows.atime_alone),
            items=items * is_copy,
        )
        return is_copy

    def _add(self, transaction: _Numbers, times: "_Times", **summed: _Numbers) -> None:
        """Add rows, summed by runs of rows of one transaction."""
        is_first = np.append(True, transaction[1:] != transaction[:-1])
        begins = np.flatnonzero(is_first[: len(transaction)])

        def reduced(how: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
            return how.reduceat(values, begins) if len(begins) else values

        limits, is_missing = np.iinfo(np.int64), ~reduced(np.logical_or, times.is_timed)
        first = reduced(np.minimum, np.where(times.is_timed, times.first_ns, limits.max))
        last = reduced(np.maximum, np.where(times.is_timed, times.last_ns, limits.min))
        self._transactions.add(
            _record(
                transaction=transaction[begins],
                first_ns=pa.array(first, mask=is_missing),
                last_ns=pa.array(last, mask=is_missing),
                commit_ns=reduced(np.maximum, np.where(times.is_commit, times.last_ns, 0)),
                **{name: reduced(np.add, column) for name, column in summed.items()},
            )
        )

    def _count_homes(self, rows: "_Rows", chosen: NDArray[np.bool_]) -> None:
        columns = (rows.home_offset, rows.home, rows.transaction)
        offset, structure, transaction = (column[chosen] for column in columns)
        if not len(offset):
            return
        if self._family == EXT:
            # One row may be several blocks.
            blocks = np.maximum(rows.length[chosen] // self._block_bytes, 1)
            within = np.arange(blocks.sum()) - np.repeat(np.cumsum(blocks) - blocks, blocks)
            offset = np.repeat(offset, blocks) + within * self._block_bytes
            structure, transaction = np.repeat(structure, blocks), np.repeat(transaction, blocks)
        else:
            # A block may have several items in one transaction, which count once, even across
            # batches. np.unique over an axis would compare pairs byte by byte, which is slow.
            order = np.lexsort((offset, transaction))
            pairs = np.stack([transaction[order], offset[order]])
            is_first = np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))
            pairs, first = pairs[:, is_first], order[is_first]
            last, known = self._last_pairs
            fresh = pairs[0] != last
            fresh[~fresh] = ~np.isin(pairs[1][~fresh], known)
            newest = int(transaction[-1])
            older = known if newest == last else known[:0]
            self._last_pairs = (newest, np.append(older, pairs[1][fresh & (pairs[0] == newest)]))
            offset, structure = pairs[1][fresh], structure[first][fresh]
        self._homes.add(
            _record(
                home_offset=offset,
                copies=np.ones(len(offset), np.int64),
                structure=structure.astype(np.int64),
            )
        )

    def _btrfs(self, rows: "_Rows") -> None:
        is_superblock = (
            (rows.structure == rows.number_of("superblock"))
            & (rows.offset == BTRFS_SUPERBLOCK_OFFSET)
            & (rows.transaction >= 0)
        )
        # A superblock written for an fsync carries the last commit's generation; its log trees
        # carry the next one.
        newest = (
            np.maximum.accumulate(
                np.maximum(np.where(rows.is_log, rows.transaction, 0), self._log_generation)
            )
            if len(rows.length)
            else rows.length
        )
        is_sync = is_superblock & (rows.transaction < newest)
        self._log_generation = int(newest[-1]) if len(newest) else self._log_generation
        self._log_syncs += int(is_sync.sum())
        self._log_sync_bytes += int((rows.length * (is_sync | rows.is_log)).sum())
        is_commit = is_superblock & ~is_sync
        is_tree = (rows.transaction >= 0) & ~rows.is_log & ~rows.is_data & ~is_sync
        none = dict.fromkeys(_SUMMED, np.zeros(len(rows.length), np.int64))
        summed = {"log": rows.length * is_tree, "items": is_commit.astype(np.int64)}
        transaction = np.where(is_tree, rows.transaction, -1)
        times = _Times(rows.time_ns, rows.time_ns, is_tree, is_commit)
        self._add(transaction, times, **none | summed)

    def result(self) -> Journal | None:
        """Return the journal's activity; None if there was none."""
        table = self._transactions.table()
        if table is None or self._family not in _LOG_OF:
            return None
        columns = {
            name: np.asarray(table[name].fill_null(0)).astype(np.int64)
            for name in table.column_names
        }
        total = {name: int(column.sum()) for name, column in columns.items()}
        found = _transactions(columns, self._family)
        if not len(found["transaction"]) and not self._log_syncs:
            return None
        why = reasons(
            self._family, found["first_ns_min"], found["end_ns"], self._marks, self._is_timed
        )
        blocks = (
            found["copies_sum"] // max(self._block_bytes, 1)
            if self._family == EXT
            else found["items_sum"]
        )
        forced = why.why == Why.FORCED.value
        again, again_bytes, most, structure = self._again(int(blocks.sum()), total["copies_sum"])
        return Journal(
            family=self._family,
            numbers=found["transaction"],
            begin_ns=found["first_ns_min"],
            end_ns=found["end_ns"],
            transaction_bytes=found["log_sum"],
            transaction_blocks=blocks,
            reasons=why,
            bytes=self._log_sync_bytes if self._family == BTRFS else total["log_sum"],
            copies=0 if self._family == BTRFS else int(blocks.sum()),
            copy_bytes=total["copies_sum"],
            again=again,
            again_bytes=again_bytes,
            most_again=most,
            most_again_structure=structure,
            atime_copy_bytes=total["atime_copy_sum"],
            checkpoint_bytes=total["checkpoint_sum"],
            forced_atime_bytes=int(
                (found["atime_copy_sum"] + found["atime_checkpoint_sum"])[forced].sum()
            ),
            log_syncs=self._log_syncs,
            log_sync_bytes=self._log_sync_bytes,
        )

    def _again(
        self, copies: int, copy_bytes: int
    ) -> tuple[int | None, int | None, int | None, str | None]:
        homes = self._homes.table()
        if homes is None or not homes.num_rows or self._homes_of is None:
            return None, None, None, None
        counted = int(pc.sum(homes["copies_sum"]).as_py())
        again = counted - homes.num_rows
        most = largest_row(homes, "copies_sum")
        again_bytes = (
            again * self._block_bytes
            if self._family == EXT
            else round(copy_bytes * again / counted)
        )
        return again, again_bytes, most["copies_sum"], self._homes_of[most["structure_max"]].as_py()


@dataclass(frozen=True)
class _Times:
    """Times of rows, whether they count, and whether the rows are commits."""

    first_ns: _Numbers
    last_ns: _Numbers
    is_timed: NDArray[np.bool_]
    is_commit: NDArray[np.bool_]


class _Kinds:
    """Columns of a batch as numbers; missing values are -1."""

    def __init__(self, batch: pa.RecordBatch, family: str) -> None:
        structure = batch.column("structure")
        self.structures = structure.dictionary
        self.structure = numbers(structure.indices)
        self.homes = batch.column("home_structure").dictionary
        self.home = numbers(batch.column("home_structure").indices)
        self.transaction = numbers(batch.column("transaction"))
        self.length = numbers(batch.column("length"))
        self.atime_alone = np.asarray(
            batch.column("atime_alone").fill_null(False).to_numpy(zero_copy_only=False), bool
        )
        names = self.structures.to_pylist()
        prefix = _LOG_OF[family]
        logs = [
            number
            for number, name in enumerate(names)
            if (name.startswith(prefix) if family == EXT else name == prefix)
        ]
        self.is_log = np.isin(self.structure, logs)
        self.is_data = self.structure == self.number_of("file_data")
        self.is_commit = self.structure == self.number_of("journal_commit")

    def number_of(self, structure: str) -> int:
        """Return the number of a structure; -2 if no row can have it."""
        place: int = self.structures.index(structure).as_py()
        return place if place >= 0 else -2


class _Rows(_Kinds):
    """Columns of rows."""

    def __init__(self, batch: pa.RecordBatch, family: str) -> None:
        super().__init__(batch, family)
        self.home_offset, self.offset, self.time_ns = (
            numbers(batch.column(name)) for name in ("home_offset", "offset", "time_ns")
        )


def _record(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(
        {
            name: column if isinstance(column, pa.Array) else pa.array(column)
            for name, column in columns.items()
        }
    )


def _transactions(columns: dict[str, _Numbers], family: str) -> dict[str, _Numbers]:
    """Select the transactions that began in these rows, in order."""
    order = np.argsort(columns["transaction"], kind="stable")
    found = {name: column[order] for name, column in columns.items()}
    if family == EXT:
        # Transactions with blocks in place only were committed before the requested phases.
        kept = (found["transaction"] >= 0) & (found["log_sum"] > 0)
    elif family == XFS:
        # The log's own headers carry their record's number, which follows the checkpoint's number.
        kept = (found["transaction"] >= 0) & (found["items_sum"] > 0)
        owner = np.cumsum(kept) - 1
        mine = (owner >= 0) & (found["transaction"] >= 0)
        sums = np.zeros(int(kept.sum()), np.int64)
        np.add.at(sums, owner[mine], found["log_sum"][mine])
        found["log_sum"][kept] = sums
    else:
        kept = (found["transaction"] >= 0) & (found["commit_ns_max"] > 0)
    found = {name: column[kept] for name, column in found.items()}
    found["end_ns"] = np.where(
        found["commit_ns_max"] > 0, found["commit_ns_max"], found["last_ns_max"]
    )
    return found


def _median(values: _Numbers) -> float | None:
    return float(np.median(values)) if len(values) else None


def _most(values: _Numbers) -> int | None:
    return int(values.max()) if len(values) else None
