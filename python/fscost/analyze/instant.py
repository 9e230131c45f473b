"""State of the disks at one instant: requests in flight and data not yet durable, to study a power
cut or an unexplained pause."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fscost import capture
from fscost.analyze.explain import Explanation
from fscost.analyze.recovery import BtrfsRecovery, Recovery, XfsRecovery, place, recovery
from fscost.analyze.rows import numbers
from fscost.analyze.sums import Sum, largest_row

_WHAT = ("structure", "home_structure", "cause", "path", "transaction")


@dataclass(frozen=True)
class Request:
    """One request. Structure, cause and path are those of its largest row; `rows` is its number of
    rows."""

    event: int
    disk: str
    op: str
    offset: int
    length: int
    submit_ns: int
    complete_ns: int
    fua: bool
    structure: str | None = None
    home_structure: str | None = None
    cause: str | None = None
    path: str | None = None
    transaction: int | None = None
    rows: int = 0


@dataclass(frozen=True)
class Volatile:
    """Bytes of one structure and file that were written but not yet durable."""

    structure: str
    path: str | None
    bytes: int


@dataclass(frozen=True)
class Running:
    """Newest transaction with a block on the disk: a transaction of ext's journal, a checkpoint of
    xfs's log, or a commit of btrfs.

    `name` is its number in the file system's own notation. `state` is `being written`, `complete`
    (its commit block, commit record or superblock is written) or `durable`; None if unknown.
    """

    unit: str
    number: int
    name: str
    begin_ns: int
    bytes: int
    state: str | None


@dataclass(frozen=True)
class Instant:
    """State of all disks at an instant. `under_way`: requests submitted before it and not
    completed. `volatile_bytes`: the sum of `volatile`."""

    at_ns: int
    phase: str
    phase_begin_ns: int
    written: Sequence[tuple[str, int]]
    written_bytes: int
    phase_written: Sequence[tuple[str, int]]
    phase_written_bytes: int
    last_flush_ns: int | None
    volatile: Sequence[Volatile]
    volatile_bytes: int
    volatile_requests: int
    running: Running | None
    recovery: Recovery | None
    """State from which a mount would recover."""
    durable_recovery: Recovery | None
    """The same state if no volatile data had reached the disk."""
    behind_superblock: Sequence[tuple[str, int]]
    """btrfs: data that no superblock references yet: tree blocks of the next generation, and data
    and log trees written since."""
    under_way: Sequence[Request]
    before: Sequence[Request]
    after: Sequence[Request]

    def json(self) -> dict[str, Any]:
        """Convert to the printed JSON form."""
        found = asdict(self)
        for name in ("recovery", "durable_recovery"):
            state: Recovery | None = getattr(self, name)
            found[name] = None if state is None else state.json()
        for name in ("written", "phase_written", "behind_superblock"):
            sums: Sequence[tuple[str, int]] = getattr(self, name)
            found[name] = [
                {"structure": structure, "write_bytes": length} for structure, length in sums
            ]
        return found


def at(recording: Path, explanation: Explanation, instant: str, count: int) -> Instant:
    """Describe the disks at an instant. `instant` is a mark's name, or seconds since the recording
    began. `count` requests before and after it are listed."""
    at_ns = capture.instant_ns(
        recording, [(mark.at_ns, mark.name) for mark in explanation.marks], instant
    )
    requests = _Requests(at_ns, count)
    for batch in capture.requests(recording):
        requests.add(batch)
    listed = [*requests.under_way, *requests.before, *requests.after]
    lost = np.array(capture.crash(recording).volatile(at_ns), np.int64)
    whole = recovery(recording, explanation.families, at_ns, [])
    durable = recovery(recording, explanation.families, at_ns, lost.tolist())
    rows = _Rows(at_ns, lost, {each.event for each in listed}, whole)
    explanation.prepare([], rows)
    phase, begin_ns = _phase(explanation, at_ns)
    written, phase_written = rows.written(), rows.written(phase)
    volatile = rows.volatile()
    return Instant(
        at_ns=at_ns,
        phase=phase,
        phase_begin_ns=begin_ns,
        written=written,
        written_bytes=sum(length for _, length in written),
        phase_written=phase_written,
        phase_written_bytes=sum(length for _, length in phase_written),
        last_flush_ns=requests.last_flush_ns,
        volatile=volatile,
        volatile_bytes=sum(each.bytes for each in volatile),
        volatile_requests=len(lost),
        running=rows.running(durable),
        recovery=whole,
        durable_recovery=durable,
        behind_superblock=rows.behind_superblock(),
        under_way=[rows.told(each) for each in requests.under_way],
        before=[rows.told(each) for each in requests.before],
        after=[rows.told(each) for each in requests.after],
    )


def _phase(explanation: Explanation, at_ns: int) -> tuple[str, int]:
    begun = [mark for mark in explanation.marks if mark.at_ns <= at_ns]
    return (begun[-1].name, begun[-1].at_ns) if begun else ("before", 0)


class _Requests:
    """Collector of information from the requests alone, which come in the order in which they took
    effect."""

    def __init__(self, at_ns: int, count: int) -> None:
        self._at_ns, self._count = at_ns, count
        self.before: list[Request] = []
        self.after: list[Request] = []
        self.under_way: list[Request] = []
        self.last_flush_ns: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of requests."""
        batch = _as_replied(batch)
        complete = numbers(batch.column("complete_ns"))
        submit = numbers(batch.column("submit_ns"))
        past = np.flatnonzero(complete <= self._at_ns)
        if len(past):
            flushes = past[_ops(batch)[past] == "flush"]
            newest_ns = int(complete[flushes].max(initial=-1))
            if newest_ns >= 0:
                self.last_flush_ns = max(self.last_flush_ns or 0, newest_ns)
            newest = _listed(batch.take(pa.array(past[max(len(past) - self._count, 0) :])))
            before = [*self.before, *newest]
            self.before = before[max(len(before) - self._count, 0) :]
        under_way = np.flatnonzero((submit <= self._at_ns) & (complete > self._at_ns))
        self.under_way += _listed(batch.take(pa.array(under_way)))
        later = np.flatnonzero(submit > self._at_ns)[: self._count - len(self.after)]
        self.after += _listed(batch.take(pa.array(later)))


class _Rows:
    """Collector of information from the explained rows."""

    def __init__(
        self,
        at_ns: int,
        volatile: NDArray[np.int64],
        listed: set[int],
        recovery: Recovery | None = None,
    ) -> None:
        self._at_ns = pa.scalar(at_ns, pa.uint64())
        self._volatile_events = pa.array(volatile, pa.uint64())
        self._is_volatile = frozenset(volatile.tolist())
        self._listed = pa.array(sorted(listed), pa.uint64())
        self._by_structure = Sum(["structure", "phase"])
        self._volatile = Sum(["structure", "path"])
        self._transactions = Sum(
            ["transaction"], [("length", "sum"), ("time_ns", "min"), ("time_ns", "max")]
        )
        self._recovery = recovery
        self._trees = Sum(["structure", "transaction"])
        self._since: dict[str, int] = {}
        self._commits: dict[int, int] = {}
        self._has_commits = False
        self._told: dict[int, list[dict[str, Any]]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows."""
        for row in (
            batch.filter(pc.is_in(batch.column("event"), value_set=self._listed))
            .select(["event", "length", *_WHAT])
            .to_pylist()
        ):
            self._told.setdefault(row["event"], []).append(row)
        past = batch.filter(pc.less_equal(batch.column("time_ns"), self._at_ns))
        if not past.num_rows:
            return
        self._by_structure.add(past)
        volatile = past.filter(pc.is_in(past.column("event"), value_set=self._volatile_events))
        if volatile.num_rows:
            self._volatile.add(volatile)
        structure = past.column("structure").cast(pa.string())
        # The journal of ext, the log of xfs and trees of btrfs, but not the blocks that a journal's
        # transaction wrote in place.
        is_log = pc.and_(
            pc.is_valid(past.column("transaction")),
            pc.match_substring_regex(structure, "^(journal_|log$|.*_tree$)"),
        )
        if isinstance(self._recovery, XfsRecovery):
            # The header of a record has a number, too.
            is_log = pc.and_(is_log, pc.is_valid(past.column("home_structure")))
        if isinstance(self._recovery, BtrfsRecovery):
            # Log trees of fsync carry the number of the running commit, but are not part of it.
            is_log = pc.and_(is_log, pc.not_equal(structure, "log_tree"))
            self._behind(past, structure, is_log)
        log = past.filter(is_log)
        if log.num_rows:
            self._transactions.add(log)
        for row in (
            past.filter(pc.equal(structure, "journal_commit"))
            .select(["transaction", "event"])
            .to_pylist()
        ):
            self._has_commits = True
            if row["transaction"] is not None:
                self._commits = {row["transaction"]: row["event"]}

    def _behind(self, past: pa.RecordBatch, structure: pa.Array, is_tree: pa.Array) -> None:
        self._trees.add(past.filter(is_tree))
        event, length = numbers(past.column("event")), numbers(past.column("length"))
        superblocks = event[np.asarray(pc.equal(structure, "superblock"))]
        since = event > superblocks[-1] if len(superblocks) else np.full(len(event), True)
        for name in ("file_data", "log_tree"):
            before = 0 if len(superblocks) else self._since.get(name, 0)
            self._since[name] = before + int(
                length[since & np.asarray(pc.equal(structure, name))].sum()
            )

    def behind_superblock(self) -> list[tuple[str, int]]:
        """Bytes that no superblock of btrfs references yet, by structure, the largest first."""
        found = {name: size for name, size in self._since.items() if size}
        if isinstance(self._recovery, BtrfsRecovery) and (table := self._trees.table()) is not None:
            later = table.filter(pc.greater(table["transaction"], self._recovery.generation))
            found.update(_by_structure(later))
        return sorted(found.items(), key=lambda each: (-each[1], each[0]))

    def written(self, phase: str | None = None) -> list[tuple[str, int]]:
        """Bytes written by structure, the largest first, of one phase or of all."""
        table = self._by_structure.table()
        if table is None:
            return []
        if phase is not None:
            table = table.filter(pc.equal(table["phase"].cast(pa.string()), phase))
        return sorted(_by_structure(table), key=lambda row: (-row[1], row[0]))

    def volatile(self) -> list[Volatile]:
        """Volatile bytes by structure and file, the largest first."""
        table = self._volatile.table()
        if table is None:
            return []
        return sorted(
            (Volatile(*row.values()) for row in table.to_pylist()),
            key=lambda each: (-each.bytes, each.structure, each.path or ""),
        )

    def running(self, durable: Recovery | None = None) -> Running | None:
        """Return the newest transaction."""
        table = self._transactions.table()
        if table is None:
            return None
        newest = largest_row(table, "time_ns_max", "transaction")
        number = newest["transaction"]
        whole, state = self._recovery, None
        if self._has_commits:
            commit = self._commits.get(number)
            state = _state(commit is not None, commit not in self._is_volatile)
        elif whole is not None and durable is not None:
            state = _state(whole.has(number), durable.has(number))
        unit = "transaction" if whole is None else whole.unit
        name = place(number) if isinstance(whole, XfsRecovery) else str(number)
        return Running(unit, number, name, newest["time_ns_min"], newest["length_sum"], state)

    def told(self, request: Request) -> Request:
        """Add structure, cause, path, transaction and number of rows to a request."""
        rows = self._told.get(request.event)
        if not rows:
            return request
        largest = max(rows, key=lambda row: row["length"])
        return replace(request, **{name: largest[name] for name in _WHAT}, rows=len(rows))


def _state(is_complete: bool, is_durable: bool) -> str:
    return "being written" if not is_complete else "durable" if is_durable else "complete"


def _ops(batch: pa.RecordBatch) -> NDArray[np.str_]:
    return np.asarray(batch.column("op").cast(pa.string()).to_numpy(zero_copy_only=False), str)


def _as_replied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the completion times of its replies, where there are any."""
    replied = pc.add(batch.column("submit_ns"), batch.column("latency_ns"))
    complete = pc.coalesce(replied, batch.column("complete_ns"))
    return batch.set_column(batch.schema.get_field_index("complete_ns"), "complete_ns", complete)


def _listed(batch: pa.RecordBatch) -> list[Request]:
    names = ["event", "disk", "op", "offset", "length", "submit_ns", "complete_ns", "fua"]
    return [Request(**row) for row in batch.select(names).to_pylist()]


def _by_structure(table: pa.Table) -> list[tuple[str, int]]:
    sums = table.group_by("structure").aggregate([("length_sum", "sum")])
    return [(row["structure"], row["length_sum_sum"]) for row in sums.to_pylist()]
