"""The workload's calls for durability (fsync, fdatasync, O_SYNC writes), and the commits that each
of them forced."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fscost.analyze.commits import SOON_NS, Why, whole
from fscost.analyze.explain import Explanation, Mark
from fscost.analyze.journal import BTRFS, BTRFS_SUPERBLOCK_OFFSET, EXT, XFS, Journal
from fscost.analyze.rows import numbers
from fscost.errors import InputError

_Numbers = NDArray[np.int64]
_NOBODY = -1


@dataclass(frozen=True)
class Fsync:
    """One call. `commit_write_bytes`: bytes of the journal, log or log tree that were written
    because of it, in `commits` transactions. What is not known is None."""

    at_ns: int
    took_ns: int | None
    phase: str
    process: int | None
    name: str | None
    inode: int | None
    path: str | None
    commits: int = 0
    commit_write_bytes: int = 0


@dataclass(frozen=True)
class Fsyncs:
    """The calls of some phases, in order. `count` includes calls that the recording could not hold.
    `is_tied`: false if commits cannot be tied to calls, because the calls have another clock."""

    calls: Sequence[Fsync]
    count: int
    is_tied: bool

    def json(self) -> dict[str, Any]:
        """Convert to the printed JSON form."""
        return asdict(self)


class Forcing:
    """The calls of an explanation's phases, as the owners of commits."""

    def __init__(self, explanation: Explanation, journal: Journal | None) -> None:
        self._explanation = explanation
        self._heard, self._count = heard(explanation.marks, explanation.phases)
        self._family = None if journal is None else journal.family
        # The clock of an emulated guest is not that of the recording.
        emulated = any("virtual_ns" in mark.detail for mark in explanation.marks)
        self._is_tied = explanation.is_timed and not emulated
        self._begin_ns, self._end_ns, self._owner = _turns(self._heard if self._is_tied else [])
        self._transactions = np.array([], np.int64)
        if journal is not None:
            self._transactions = journal.numbers
            self._forced_by = self._forcing(journal)
        self._commits: _Numbers = np.zeros(len(self._heard), np.int64)
        self._bytes: _Numbers = np.zeros(len(self._heard), np.int64)
        if journal is not None and journal.family == XFS:
            # xfs's log has no block that ends a checkpoint.
            np.add.at(self._commits, self._forced_by[self._forced_by >= 0], 1)

    def fsyncs(self) -> Fsyncs:
        """Return the calls, with the bytes of the commits that they forced."""
        self._explanation.prepare([], self)
        paths = _paths(self._explanation)
        return Fsyncs(
            [
                replace(
                    call,
                    path=None if call.inode is None else paths.get(call.inode),
                    commits=int(self._commits[number]),
                    commit_write_bytes=int(self._bytes[number]),
                )
                for number, call in enumerate(self._heard)
            ],
            self._count,
            self._is_tied,
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows."""
        if self._family is None:
            return
        owner, is_end = self._owners(batch)
        np.add.at(self._bytes, owner[owner >= 0], numbers(batch.column("length"))[owner >= 0])
        np.add.at(self._commits, owner[is_end & (owner >= 0)], 1)

    def charged(self) -> Explanation:
        """Return the explanation with each commit charged to the file whose call forced it."""
        if not self._is_tied:
            raise InputError(
                "commits cannot be charged: this guest was emulated, so its calls have another"
                " clock than its writes",
                "measure in the native lab, or where KVM works",
            )
        if self._family is None or not self._heard:
            return self._explanation
        whole, paths = self._explanation, _paths(self._explanation)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in whole.batches():
                owner, _ = self._owners(batch)
                column = batch.column("path")
                names = column.dictionary
                known = [
                    paths.get(-1 if call.inode is None else call.inode) for call in self._heard
                ]
                place = pc.index_in(pa.array(known, pa.string()), value_set=names.cast(pa.string()))
                mine = np.append(numbers(place), _NOBODY)[owner]
                indices = np.where(mine >= 0, mine, numbers(column.indices)).astype(np.int32)
                texts = pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), names)
                yield batch.set_column(batch.schema.get_field_index("path"), "path", texts)

        return whole.with_batches(batches)

    def _forcing(self, journal: Journal) -> _Numbers:
        """Return the call that forced each transaction."""
        owner = self._at(journal.end_ns)
        is_forced = journal.reasons.why == Why.FORCED.value
        if journal.family == BTRFS:
            # The reasons of its commits are inferred.
            is_forced = np.ones(len(owner), bool)
        if journal.family != XFS:
            # ext and btrfs begin to write a commit when it is asked for, xfs earlier.
            at_ns = np.array([*(call.at_ns for call in self._heard), 0], np.int64)
            is_forced = is_forced & (at_ns[owner] <= journal.begin_ns)
        return np.where(is_forced, owner, _NOBODY)

    def _at(self, times_ns: _Numbers) -> _Numbers:
        """Return the call that a commit at each time belongs to: of the calls that wait then, the
        first."""
        if not len(self._owner):
            return np.full(len(times_ns), _NOBODY)
        turn = np.searchsorted(self._begin_ns, times_ns, side="right") - 1
        is_within = (turn >= 0) & (times_ns <= self._end_ns[turn])
        return np.where(is_within, self._owner[turn], _NOBODY)

    def _owners(self, batch: pa.RecordBatch) -> tuple[_Numbers, NDArray[np.bool_]]:
        """Return the call that forced each row of a commit, and the rows that end a commit."""
        structure = batch.column("structure")
        of_name = {name: place for place, name in enumerate(structure.dictionary.to_pylist())}
        kinds, transaction = numbers(structure.indices), numbers(batch.column("transaction"))
        time_ns = numbers(batch.column("time_ns"))

        def are(*names: str) -> NDArray[np.bool_]:
            return np.isin(kinds, [of_name[name] for name in names if name in of_name])

        if self._family == BTRFS:
            is_data = are("file_data")
            by_time = are("log_tree", "superblock")
            is_end = are("superblock") & (
                numbers(batch.column("offset")) == BTRFS_SUPERBLOCK_OFFSET
            )
            by_number = ~by_time & ~is_data & (transaction >= 0)
        elif self._family == EXT:
            by_time = is_end = are("journal_fast_commit")
            by_number = (
                are(*(name for name in of_name if name.startswith("journal_"))) & ~by_time
            ) & (transaction >= 0)
            is_end = is_end | are("journal_commit")
        else:
            by_time = np.zeros(len(kinds), bool)
            by_number = are("log") & (transaction >= 0)
            is_end = by_time
        owner = np.full(len(kinds), _NOBODY)
        owner[by_time] = self._at(time_ns[by_time])
        owner[by_number] = self._of_transactions(transaction[by_number])
        return owner, is_end

    def _of_transactions(self, transaction: _Numbers) -> _Numbers:
        if not len(self._transactions):
            return np.full(len(transaction), _NOBODY)
        # The headers of xfs's log carry their record's number, which follows the checkpoint's.
        place = np.searchsorted(self._transactions, transaction, side="right") - 1
        is_known = place >= 0
        if self._family != XFS:
            is_known &= self._transactions[place] == transaction
        return np.where(is_known, self._forced_by[place], _NOBODY)


def heard(marks: Sequence[Mark], phases: Sequence[str]) -> tuple[list[Fsync], int]:
    """Return the calls of these phases in order, and the number that were made."""
    found: list[Fsync] = []
    count = 0
    for before, after in pairwise(marks):
        noted = after.detail.get("sync_calls")
        if before.name not in phases or not isinstance(noted, dict):
            continue
        made = noted.get("count")
        count += made if type(made) is int and made >= 0 else 0
        found += _calls(before, noted)
    return found, max(count, len(found))


def _calls(mark: Mark, noted: Mapping[str, Any]) -> Iterator[Fsync]:
    """Yield the calls of an interval. The recording is untrusted."""
    lists = [noted.get(name) for name in ("after_us", "took_us", "caller", "callers")]
    after_us, took_us, caller, callers = (each if isinstance(each, list) else [] for each in lists)
    at_ns = mark.at_ns
    known = [each if isinstance(each, dict) else {} for each in callers]
    for number, difference_us in enumerate(whole(after_us)):
        at_ns += 1000 * difference_us
        place = caller[number] if number < len(caller) else None
        by = known[place] if type(place) is int and 0 <= place < len(known) else {}
        took = took_us[number] if number < len(took_us) else None
        yield Fsync(
            at_ns,
            1000 * took if type(took) is int and 0 < took < 1 << 40 else None,
            mark.name,
            _number(by.get("process")),
            name if isinstance(name := by.get("name"), str) else None,
            _number(by.get("inode")),
            None,
        )


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _turns(calls: Sequence[Fsync]) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return intervals that do not overlap, with the call that each belongs to: of the calls that
    wait at a time, the first, because the others join the commit that it started."""
    at_ns = np.array([call.at_ns for call in calls], np.int64)
    took_ns = np.array([call.took_ns or 0 for call in calls], np.int64)
    # A call of unknown duration, such as an O_SYNC write, may wait until the next call.
    following = np.append(at_ns[1:], np.iinfo(np.int64).max)
    end_ns = np.where(took_ns > 0, at_ns + took_ns, np.minimum(following, at_ns + SOON_NS))
    until = np.append(0, np.maximum.accumulate(end_ns)[:-1]) if len(calls) else end_ns
    has_turn = end_ns > until
    begin_ns = np.maximum(at_ns, until)
    return begin_ns[has_turn], end_ns[has_turn], np.flatnonzero(has_turn)


def _paths(explanation: Explanation) -> dict[int, str]:
    """Return the path of each inode; if it had several, that of the most bytes."""
    sums = explanation.sums("inode", "path")
    rows = sums.filter(pc.and_(pc.is_valid(sums["inode"]), pc.is_valid(sums["path"])))
    rows = rows.sort_by("length_sum")
    return dict(
        zip(rows["inode"].to_pylist(), rows["path"].cast(pa.string()).to_pylist(), strict=True)
    )
