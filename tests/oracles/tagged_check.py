"""Every row of every write beside the content of that write.

A sector that tagged_work.py wrote says whose it is. The row that holds it must say `file_data`,
that file's inode, and a path that the file had by then, or none.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tests.oracles import content
from tests.oracles.bounds import BOUNDS
from tests.oracles.content import Content
from tests.oracles.ledger import NEVER, Ledger
from tests.oracles.tagged_work import SECTOR

from fscost import capture

RIGHT, INLINE, LEFTOVER, PARITY = "right", "inline", "leftover", "parity"
"""Parity of one block and of zeroes is that block once more."""
NO_INODE, NO_PATH, UNKNOWN = "no inode", "no path", "unknown"
DOUBTFUL = (NO_INODE, NO_PATH, UNKNOWN)
STRUCTURE, INODE, PATH, NOT_DATA = "structure", "inode", "path", "not data"
LATER, STALE = "later path", "stale path"
"""The file got that name after the write; or it had lost that name for another before, and that was
on the disk."""
WRONG = (STRUCTURE, INODE, PATH, LATER, STALE, NOT_DATA)

INLINE_STRUCTURES = {
    "fs_tree",
    "log_tree",
    "relocation_tree",
    "node",
    "mft",
    "inode_table",
    "inode_chunk",
    "log",
}
"""Where small files lie beside what describes them (docs/explaining.md)."""
LEFTOVER_STRUCTURES = {"directory", "directory_index", "symlink", "xattr", "extent_map"}
"""Behind what they hold is left what memory or the block held before."""
EXAMPLES = 5


@dataclass
class Summary:
    """Bytes and rows, by how they compare."""

    bytes: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    examples: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, sectors: int, example: Callable[[], str]) -> None:
        self.bytes[kind] += sectors * SECTOR
        self.rows[kind] += 1
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(example())

    def join(self, other: "Summary") -> None:
        """Add what another compared."""
        self.bytes.update(other.bytes)
        self.rows.update(other.rows)

    @property
    def compared(self) -> int:
        return self.bytes.total() - sum(self.bytes[kind] for kind in (INLINE, LEFTOVER, PARITY))

    def share(self, kinds: Sequence[str]) -> float:
        return sum(self.bytes[kind] for kind in kinds) / max(self.compared, 1)

    def check(self, family: str) -> None:
        """Neither more doubtful nor more wrong than its family may be."""
        print(self)
        bound = BOUNDS[family]
        assert self.compared > 0
        assert self.share(WRONG) <= bound.wrong, bound.reason
        assert self.share(DOUBTFUL) <= bound.doubtful, bound.reason

    def __str__(self) -> str:
        lines = [
            f"{self.rows.total()} rows compared, {self.compared} bytes; doubtful {self.share(DOUBTFUL):.2%}, wrong {self.share(WRONG):.2%}"
        ]
        lines += [
            f"  {kind:12} {self.bytes[kind]:>12} bytes {self.rows[kind]:>8} rows"
            for kind in (RIGHT, INLINE, LEFTOVER, PARITY, *DOUBTFUL, *WRONG)
            if self.rows[kind]
        ]
        lines += [
            f"  {kind}: {example}"
            for kind in (*WRONG, *DOUBTFUL)
            for example in self.examples[kind]
        ]
        return "\n".join(lines)


class Times:
    """Between which actions each write fell, by what writes held. Compressed data hides what was
    written first, and so by when it was; so do
    nodes, where a file of `inline_bytes` at most is."""

    def __init__(
        self, found: Content, ledger: Ledger, inline_bytes: int, *, is_compressed: bool
    ) -> None:
        tagged = np.nonzero(found.is_tagged)[0]
        identity, action = (found.field(at, "<u4")[tagged] for at in (8, 12))
        offset, event = found.field(16, "<u8")[tagged], found.event[tagged]
        self._events = event
        self._begun = np.maximum.accumulate(action) if len(action) else action
        _, first = np.unique(
            (identity << 42) | (action << 21) | (offset // SECTOR), return_index=True
        )
        first = first[offset[first] >= inline_bytes]
        ends = []
        for number, synced in [] if is_compressed else ledger.syncs:
            covered = first[
                (action[first] <= number) & ((identity[first] == synced) | (synced is None))
            ]
            if len(covered):
                ends.append((int(event[covered].max()), number))
        ends.sort()
        self._written = np.array([end for end, _ in ends], dtype=np.int64)
        self._by = np.minimum.accumulate(
            np.array([number for _, number in ends] + [NEVER], dtype=np.int64)[::-1]
        )[::-1]

    def latest(self, event: int) -> int:
        """No later action had begun when it completed."""
        return int(self._by[np.searchsorted(self._written, event)])

    def earliest(self, event: int) -> int:
        """This action had begun when it completed."""
        place = int(np.searchsorted(self._events, event, side="right"))
        return int(self._begun[place - 1]) if place else 0


class Names:
    """Whether a path was a file's."""

    def __init__(self, ledger: Ledger, times: Times, *, is_atomic: bool) -> None:
        self.ledger, self.times, self.is_atomic = ledger, times, is_atomic
        self._paths: dict[str, dict[int, list[tuple[int, int]]]] = {}
        self._all = [number for number, synced in ledger.syncs if synced is None]
        self._had: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for steps in ledger.steps.values():
            for identity, gained, dropped in steps:
                self._had[identity].append((gained, dropped))

    def _durable(self, identity: int) -> list[int]:
        """When it was given the names that reached the disk for certain: others may never have."""
        syncs = [number for number, synced in self.ledger.syncs if synced in (None, identity)]
        return [
            first
            for first, last in self._had[identity]
            if any(first <= number < last for number in syncs)
        ]

    def compare(self, identities: set[int], path: str | None, event: int) -> str:
        latest = self.times.latest(event)
        if path is None:
            return (
                NO_PATH
                if any(first <= latest for each in identities for first in self._durable(each))
                else RIGHT
            )
        if path not in self._paths:
            self._paths[path] = self.ledger.intervals(path, is_atomic=self.is_atomic)
        ever = [
            interval for identity in identities for interval in self._paths[path].get(identity, ())
        ]
        had = [(first, last) for first, last in ever if first <= latest]
        if not had:
            return LATER if ever else PATH
        ended = max(last for _, last in had)
        durable = next((number for number in self._all if number >= ended), NEVER)
        now = self.times.earliest(event)
        # What has no name left may bear its last one.
        has_another = any(
            first < durable and last > latest
            for each in identities
            for first, last in self._had[each]
        )
        return STALE if now > durable and has_another else RIGHT


def compare(
    recording: Path,
    ledger: Ledger,
    table: pa.Table,
    *,
    is_atomic: bool,
    inline_bytes: int,
    has_inodes: bool = True,
    is_compressed: bool = False,
) -> Summary:
    """All rows of an explanation."""
    summary = Summary()
    with tempfile.TemporaryDirectory(dir=recording.parent) as folder:
        for disk, each in enumerate(capture.info(recording)["disks"]):
            held = content.read(recording, disk, Path(folder, "log"))
            times = Times(held, ledger, inline_bytes, is_compressed=is_compressed)
            rows = table.filter(pc.equal(table["disk"], each["name"])).to_pylist()
            _compare(
                rows,
                held,
                Names(ledger, times, is_atomic=is_atomic),
                summary,
                has_inodes,
                is_compressed,
            )
    return summary


def _sectors(rows: list[dict], held: Content) -> npt.NDArray[np.int64]:
    """For each sector written, its row, or -1."""
    owner = np.full(len(held.event), -1, dtype=np.int64)
    starts = np.searchsorted(held.event, [row["event"] for row in rows])
    for number, (row, start) in enumerate(zip(rows, starts.tolist(), strict=True)):
        if start == len(held.event) or held.event[start] != row["event"]:
            continue
        first, last = (
            -(-(byte - int(held.at[start])) // SECTOR)
            for byte in (row["offset"], row["offset"] + row["length"])
        )
        owner[start + first : start + last] = number
    return owner


def _compare(
    rows: list[dict],
    held: Content,
    names: Names,
    summary: Summary,
    has_inodes: bool,
    is_compressed: bool,
) -> None:
    ledger = names.ledger
    owner = _sectors(rows, held)
    tagged = held.is_tagged & (owner >= 0)
    zero = ~held.bytes.any(axis=1)
    identities, actions = held.field(8, "<u4"), held.field(12, "<u4")
    first_of_row = {}
    for number, index in zip(*np.unique(owner, return_index=True), strict=True):
        first_of_row[int(number)] = int(index)
    chosen = np.nonzero(tagged)[0]
    groups, index, counts = np.unique(
        (owner[chosen] << 24) | identities[chosen], return_index=True, return_counts=True
    )
    for group, place, count in zip(
        groups.tolist(), chosen[index].tolist(), counts.tolist(), strict=True
    ):
        row, identity = rows[group >> 24], group & 0xFFFFFF
        kind = _kind(row, identity, names, has_inodes)
        first = first_of_row[group >> 24]
        if (
            kind == STRUCTURE
            and row["structure"] in LEFTOVER_STRUCTURES
            and not tagged[first]
            and not zero[first]
        ):
            kind = LEFTOVER
        summary.add(kind, count, partial(_holding, row, ledger, identity, int(actions[place])))
    if is_compressed:
        return
    is_data = np.array(
        [
            row["structure"] == "file_data" and row["phase"] not in ("before", "mkfs", "mount")
            for row in rows
        ]
        + [False]
    )
    other = np.nonzero(is_data[owner] & ~tagged & ~zero & (owner >= 0))[0]
    for number, count in zip(*np.unique(owner[other], return_counts=True), strict=True):
        example = held.bytes[other[owner[other] == number][0]].tobytes()[:48]
        summary.add(
            NOT_DATA, int(count), partial("{} holds {!r}".format, _told(rows[number]), example)
        )


def _kind(row: dict, identity: int, names: Names, has_inodes: bool) -> str:
    structure = row["home_structure"] or row["structure"]
    if structure == "unknown":
        return UNKNOWN
    if structure == PARITY:
        return PARITY
    if structure != "file_data":
        return INLINE if structure in INLINE_STRUCTURES else STRUCTURE
    identities = names.ledger.sharing(identity)
    if row["inode"] is None:
        return NO_INODE
    if has_inodes:
        identities = {each for each in identities if names.ledger.inodes[each] == row["inode"]}
        if not identities:
            return INODE
    return names.compare(identities, row["path"], row["event"])


def _holding(row: dict, ledger: Ledger, identity: int, action: int) -> str:
    return f"{_told(row)} holds identity {identity} (inode {ledger.inodes.get(identity)}) of action {action}, {_called(ledger, identity)}"


def _told(row: dict) -> str:
    what = " of ".join(filter(None, (row["structure"], row["home_structure"])))
    return f"event {row['event']} ({row['phase']}) at {row['offset']}+{row['length']}: {what}, inode {row['inode']}, {row['path']}"


def _called(ledger: Ledger, identity: int) -> str:
    steps = [
        (folder, name, gained, dropped)
        for (folder, name), found in ledger.steps.items()
        for each, gained, dropped in found
        if each == identity
    ]
    return (
        ", ".join(
            f"{folder}/{name} {gained}–{'' if dropped == NEVER else dropped}"
            for folder, name, gained, dropped in steps
        )
        or "nameless"
    )
