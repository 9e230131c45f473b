"""Compare every row of every write with the content of that write.

A sector that tagged_work.py wrote names its owner. The row that holds it must say `file_data`, that
file's inode, and either a path that the file had by then or none.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tests.oracles import content
from tests.oracles.bounds import SHARES, Bound
from tests.oracles.content import Content
from tests.oracles.ledger import NEVER, Had, Ledger
from tests.oracles.tagged_tree import SECTOR

from fscost import capture

RIGHT, INLINE, LEFTOVER, PARITY = "right", "inline", "leftover", "parity"
"""Results of a comparison that are not errors. The parity of one block and zeroes is a copy of that
block."""
NOT_COMPARED = (INLINE, LEFTOVER, PARITY)
NO_INODE, NO_PATH, UNKNOWN = "no inode", "no path", "unknown"
MISSING = (NO_INODE, NO_PATH, UNKNOWN)
STRUCTURE, INODE, PATH, NOT_DATA = "structure", "inode", "path", "not data"
LATER, STALE, NEVER_WAS = "later path", "stale path", "path that never was"
"""Kinds of wrong paths: the file got the name after the write; it had exchanged the name for
another one earlier and that change was already on the disk; or a directory was renamed, so that the
parts of the path never existed at the same time."""
WRONG = (STRUCTURE, INODE, PATH, LATER, STALE, NEVER_WAS, NOT_DATA)

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
"""Structures that may hold small files beside their metadata (docs/explaining.md)."""
LEFTOVER_STRUCTURES = {"directory", "directory_index", "symlink", "xattr", "extent_map"}
"""Structures that may be followed by leftovers of memory or of the block's earlier content."""
RIGHT_PLACE, NO_PLACE, WRONG_PLACE = "the right offset", "no offset", "another offset"
MISPLACED = 0.01
"""Maximum share of bytes with a wrong offset in their file."""
EXAMPLES = 5


@dataclass
class Summary:
    """Bytes by the result of comparing their rows; rows with a doubtful owner are counted
    separately."""

    bytes: Counter[str] = field(default_factory=Counter)
    doubted: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    """Bytes by the comparison of their offset in the file, of rows that name the right file."""
    rows: int = 0
    examples: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(
        self, kind: str, sectors: int, example: Callable[[], str], *, is_doubtful: bool
    ) -> None:
        (self.doubted if is_doubtful else self.bytes)[kind] += sectors * SECTOR
        self.rows += 1
        said = f"doubtful, {kind}" if is_doubtful else kind
        if kind not in NOT_COMPARED and len(self.examples[said]) < EXAMPLES:
            self.examples[said].append(example())

    @classmethod
    def sum(cls, parts: Iterable["Summary"]) -> "Summary":
        """Add up summaries, without their examples."""
        summed = cls()
        for part in parts:
            summed.bytes.update(part.bytes)
            summed.doubted.update(part.doubted)
            summed.places.update(part.places)
            summed.rows += part.rows
        return summed

    @property
    def compared(self) -> int:
        both = (self.bytes, self.doubted)
        left_out = sum(counter[kind] for counter in both for kind in NOT_COMPARED)
        return sum(counter.total() for counter in both) - left_out

    def _share(self, counter: Counter[str], kinds: Sequence[str]) -> float:
        return sum(counter[kind] for kind in kinds) / max(self.compared, 1)

    @property
    def silent(self) -> float:
        """The share of bytes in rows that are wrong and not marked as doubtful."""
        return self._share(self.bytes, WRONG)

    @property
    def doubtful_right(self) -> float:
        """The share of bytes in rows that are right, although they are marked as doubtful."""
        return self._share(self.doubted, (RIGHT,))

    @property
    def doubtful_wrong(self) -> float:
        """The share of bytes in rows that are marked as doubtful, and lack something or are
        wrong."""
        return self._share(self.doubted, (*MISSING, *WRONG))

    @property
    def missing(self) -> float:
        """The share of bytes in rows not marked as doubtful that lack something that was on the
        disk."""
        return self._share(self.bytes, MISSING)

    @property
    def misplaced(self) -> float:
        """The share of bytes whose offset in the file is wrong."""
        return self.places[WRONG_PLACE] / max(self.places.total(), 1)

    @property
    def worst(self) -> str | None:
        """The kind of silent error with the most bytes."""
        wrong = {kind: self.bytes[kind] for kind in WRONG if self.bytes[kind]}
        return max(wrong, key=wrong.__getitem__) if wrong else None

    def shares(self) -> dict[str, float]:
        return {share: getattr(self, share) for share in SHARES}

    def check(self, bound: Bound) -> None:
        """Assert that no share exceeds its bound."""
        print(self)
        assert self.compared > 0
        exceeded = [
            f"{share} {found:.3%} exceeds {getattr(bound, share):.3%}"
            for share, found in self.shares().items()
            if found > getattr(bound, share)
        ]
        if self.misplaced > MISPLACED:
            exceeded.append(f"{self.misplaced:.3%} of the offsets in files are wrong")
        assert not exceeded, f"{', '.join(exceeded)}: {bound.reason}"

    def __str__(self) -> str:
        shares = "  ".join(f"{share} {found:.3%}" for share, found in self.shares().items())
        lines = [f"{self.rows} rows compared, {self.compared} bytes; {shares}"]
        counters = (("", self.bytes), ("doubtful, ", self.doubted), ("at ", self.places))
        for said, counter in counters:
            lines += [f"  {count:>12} bytes {said}{kind}" for kind, count in counter.items()]
        lines += [
            f"  {kind}: {each}"
            for kind, examples in self.examples.items()
            if kind != RIGHT
            for each in examples
        ]
        return "\n".join(lines)


class Times:
    """The actions between which each write happened, derived from the content of the writes.
    Compressed data hides what was written first, and so the latest possible time. Nodes hide it for
    files of at most `inline_bytes`. Parity repeats old content: that of one block, when the other
    blocks of its stripe become zeroes."""

    def __init__(
        self,
        found: Content,
        ledger: Ledger,
        inline_bytes: int,
        *,
        is_parity: npt.NDArray[np.bool_],
        is_compressed: bool,
    ) -> None:
        tagged = np.nonzero(found.is_tagged & ~is_parity)[0]
        identity, action = (found.field(at, "<u4")[tagged] for at in (8, 12))
        offset, event = found.field(16, "<u8")[tagged], found.event[tagged]
        self._events = event
        self._begun = np.maximum.accumulate(action) if len(action) else action
        keys = (identity << 44) | (action << 26) | (offset // SECTOR)
        _, first = np.unique(keys, return_index=True)
        first = first[offset[first] >= inline_bytes]
        self.is_first = np.zeros(len(found.event), dtype=bool)
        """Mask by sector: its content was on no disk before, so only the file that it names can own
        it."""
        self.is_first[tagged[first]] = not is_compressed
        ends = []
        for synced, before, ended in [] if is_compressed else ledger.syncs:
            covered = first[
                (action[first] <= before) & ((identity[first] == synced) | (synced is None))
            ]
            if len(covered):
                ends.append((int(event[covered].max()), ended))
        ends.sort()
        self._written = np.array([end for end, _ in ends], dtype=np.int64)
        self._by = np.minimum.accumulate(
            np.array([number for _, number in ends] + [NEVER], dtype=np.int64)[::-1]
        )[::-1]

    def latest(self, event: int) -> int:
        """Return the last action that can have begun when the event completed."""
        return int(self._by[np.searchsorted(self._written, event)])

    def earliest(self, event: int) -> int:
        """Return an action that had begun when the event completed."""
        place = int(np.searchsorted(self._events, event, side="right"))
        return int(self._begun[place - 1]) if place else 0


class Names:
    """Comparison of paths with the names that files had."""

    def __init__(self, ledger: Ledger, times: Times) -> None:
        self.ledger, self.times = ledger, times
        self._paths: dict[str, dict[int, list[tuple[int, int]]]] = {}
        self._all = [sync for sync in ledger.syncs if sync.identity is None]
        self._had: defaultdict[int, list[Had]] = defaultdict(list)
        for steps in ledger.steps.values():
            for had in steps:
                self._had[had.identity].append(had)

    def _durable(self, identity: int) -> list[int]:
        """Return the actions that gave the file names which certainly reached the disk; other names
        may never have reached it."""
        syncs = [sync for sync in self.ledger.syncs if sync.identity in (None, identity)]
        return [
            had.gained
            for had in self._had[identity]
            if any(had.gained <= sync.covered and sync.ended < had.left for sync in syncs)
        ]

    def _is_named(self, identity: int, action: int) -> bool:
        """False if the file had lost all its names when this action wrote to it."""
        return any(had.left > action for had in self._had[identity])

    def compare(self, identities: set[int], path: str | None, event: int, action: int) -> str:
        """Compare the path of a row of an event, whose oldest content this action wrote."""
        latest = self.times.latest(event)
        if path is None:
            named = [each for each in identities if self._is_named(each, action)]
            is_durable = any(first <= latest for each in named for first in self._durable(each))
            return NO_PATH if is_durable else RIGHT
        if path not in self._paths:
            self._paths[path] = self.ledger.intervals(path)
        ever = [
            interval for identity in identities for interval in self._paths[path].get(identity, ())
        ]
        then = [(first, last) for first, last in ever if first <= latest]
        if not then:
            if ever:
                return LATER
            parts = self.ledger.intervals(path, is_atomic=False)
            return NEVER_WAS if identities & parts.keys() else PATH
        ended = max(last for _, last in then)
        durable = next((sync.ended for sync in self._all if sync.covered >= ended), NEVER)
        now = self.times.earliest(event)
        # A file that has no name left may keep its last one.
        has_another = any(
            had.gained < durable and had.left > latest
            for each in identities
            for had in self._had[each]
        )
        return STALE if now > durable and has_another else RIGHT


def compare(
    recording: Path,
    ledger: Ledger,
    table: pa.Table,
    *,
    inline_bytes: int,
    has_inodes: bool = True,
    is_compressed: bool = False,
) -> Summary:
    """Compare all rows of an explanation."""
    summary = Summary()
    with tempfile.TemporaryDirectory(dir=recording.parent) as folder:
        for disk, each in enumerate(capture.info(recording)["disks"]):
            held = content.read(recording, disk, Path(folder, "log"))
            rows = table.filter(pc.equal(table["disk"], each["name"])).to_pylist()
            owner = _sectors(rows, held)
            parity = np.array([row["structure"] == PARITY for row in rows] + [False])
            times = Times(
                held, ledger, inline_bytes, is_parity=parity[owner], is_compressed=is_compressed
            )
            _compare(
                rows,
                owner,
                held,
                Names(ledger, times),
                summary,
                has_inodes,
                is_compressed,
            )
    return summary


def _sectors(rows: list[dict], held: Content) -> npt.NDArray[np.int64]:
    """Return the index of the row for each sector written, or -1."""
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
    owner: npt.NDArray[np.int64],
    held: Content,
    names: Names,
    summary: Summary,
    has_inodes: bool,
    is_compressed: bool,
) -> None:
    ledger = names.ledger
    tagged = held.is_tagged & (owner >= 0)
    zero = ~held.bytes.any(axis=1)
    identities, actions = held.field(8, "<u4"), held.field(12, "<u4")
    first_of_row = {}
    for number, index in zip(*np.unique(owner, return_index=True), strict=True):
        first_of_row[int(number)] = int(index)
    chosen = np.nonzero(tagged)[0]
    keys = (owner[chosen] << 25) | (identities[chosen] << 1) | names.times.is_first[chosen]
    groups, index, group_of, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    right: list[int] = []
    oldest = np.full(len(groups), NEVER, dtype=np.int64)
    np.minimum.at(oldest, group_of, actions[chosen])
    for group, place, action, count in zip(
        *(each.tolist() for each in (groups, chosen[index], oldest, counts)), strict=True
    ):
        row, identity, is_first = rows[group >> 25], group >> 1 & 0xFFFFFF, group & 1
        by = 0 if is_first else names.times.latest(row["event"])
        kind = _kind(row, ledger.sharing(identity, by), names, action, has_inodes)
        first = first_of_row[group >> 25]
        if (
            kind == STRUCTURE
            and row["structure"] in LEFTOVER_STRUCTURES
            and not tagged[first]
            and not zero[first]
        ):
            kind = LEFTOVER
        example = partial(_holding, row, ledger, identity, int(actions[place]))
        summary.add(kind, count, example, is_doubtful=row["doubtful"])
        if is_first and kind == RIGHT and not row["doubtful"]:
            right.append(group)
    places = chosen[np.isin(keys, right)]
    _compare_places(rows, owner[places], held, places, summary)
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
        content = held.bytes[other[owner[other] == number][0]].tobytes()[:48]
        example = partial("{} holds {!r}".format, _told(rows[number]), content)
        summary.add(NOT_DATA, int(count), example, is_doubtful=rows[number]["doubtful"])


def _compare_places(
    rows: list[dict],
    owner: npt.NDArray[np.int64],
    held: Content,
    sectors: npt.NDArray[np.int64],
    summary: Summary,
) -> None:
    """Compare the offsets in files of sectors whose content was on no disk before: a file's range
    may have been collapsed since."""
    unknown = [row["file_offset"] is None for row in rows]
    shifts = np.array([(row["file_offset"] or 0) - row["offset"] for row in rows], dtype=np.int64)
    is_unknown = np.array(unknown, dtype=bool)[owner]
    expected = held.field(16, "<u8")[sectors]
    is_wrong = ~is_unknown & (held.at[sectors] + shifts[owner] != expected)
    counts = {NO_PLACE: is_unknown.sum(), WRONG_PLACE: is_wrong.sum()}
    counts[RIGHT_PLACE] = len(sectors) - sum(counts.values())
    summary.places.update({kind: int(count) * SECTOR for kind, count in counts.items() if count})
    for index in np.nonzero(is_wrong)[0][:EXAMPLES].tolist():
        row = rows[owner[index]]
        said = f"{_told(row)} at {row['file_offset']} holds offset {expected[index]}"
        summary.examples[WRONG_PLACE].append(said)


def _kind(row: dict, identities: set[int], names: Names, action: int, has_inodes: bool) -> str:
    structure = row["home_structure"] or row["structure"]
    if structure == "unknown":
        return UNKNOWN
    if structure == PARITY:
        return PARITY
    if structure != "file_data":
        return INLINE if structure in INLINE_STRUCTURES else STRUCTURE
    if row["inode"] is None:
        return NO_INODE
    if has_inodes:
        identities = {each for each in identities if names.ledger.inodes[each] == row["inode"]}
        if not identities:
            return INODE
    return names.compare(identities, row["path"], row["event"], action)


def _holding(row: dict, ledger: Ledger, identity: int, action: int) -> str:
    inode = ledger.inodes.get(identity)
    what = f"{_told(row)} holds identity {identity} (inode {inode}) of action {action}"
    return f"{what}, {_called(ledger, identity)}"


def _told(row: dict) -> str:
    what = " of ".join(filter(None, (row["structure"], row["home_structure"])))
    place = f"event {row['event']} ({row['phase']}) at {row['offset']}+{row['length']}"
    return f"{place}: {what}, inode {row['inode']}, {row['path']}"


def _called(ledger: Ledger, identity: int) -> str:
    steps = [
        (folder, name, had.gained, had.dropped)
        for (folder, name), found in ledger.steps.items()
        for had in found
        if had.identity == identity
    ]
    return (
        ", ".join(
            f"{folder}/{name} {gained}–{'' if dropped == NEVER else dropped}"
            for folder, name, gained, dropped in steps
        )
        or "nameless"
    )
