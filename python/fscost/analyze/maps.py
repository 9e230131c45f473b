"""Maps of written bytes over time and place, which reduce millions of rows to a few thousand
cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fscost.analyze.explain import Explanation
from fscost.analyze.rows import numbers

DATA, JOURNAL, INODES, SPACE, OTHER, RAID, UNKNOWN = AREAS = (
    "file data",
    "journal or log",
    "inodes and names",
    "free space",
    "other metadata",
    "RAID",
    "unknown",
)
"""Areas that colour the cells of a block map: groups of structures, few enough to tell apart."""
_AREA_OF = {
    DATA: "file_data symlink",
    INODES: (
        "inode_table inode_chunk directory directory_index extent_map xattr node mft fs_tree"
        " orphan_file"
    ),
    SPACE: (
        "group_descriptors block_bitmap inode_bitmap agf agi agfl free_space_btree inode_btree"
        " free_inode_btree rmap_btree refcount_btree realtime nat sit dat sufile"
        " allocation_table extent_tree free_space_tree free_space_cache block_group_tree"
    ),
    RAID: "parity md_superblock md_bitmap md_partial_parity_log md_resync",
    UNKNOWN: "unknown unused",
}
_AREAS_BY_STRUCTURE = {
    structure: area for area, names in _AREA_OF.items() for structure in names.split()
}
MIXED = "mixed"
"""Cause of bytes with several causes at once."""
SLICES, ROWS = 120, 80
"""Number of cells of a block map: time slices across, rows of offsets down."""
REWRITE_COLUMNS, REWRITE_ROWS = 64, 24
"""Number of cells of a map of rewrites, in order of offsets, row by row."""
_MOST_EDGES = 1 << 24
_PIECE = 1 << 16
"""Ranges handled at once, so that intermediate results stay small."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Maps:
    """Tables for charts. Times are in seconds from the beginning of the first phase shown.

    - `timeline`: slice_begin_s, slice_end_s, cause (or `MIXED`), write_bytes.
    - `blocks`: disk, slice_begin_s, slice_end_s, row, offset_bytes (of the row's beginning), area
      (of most bytes in the cell), write_bytes. Each row covers the same number of bytes of written
      places, in order of offsets.
    - `rewrites`: disk, column, row, offset_bytes (of the cell's beginning), most_writes (of a
      byte). Cells are of equal size, in order of offsets, row by row.
    - `writes_per_place`: most_writes (the class's upper bound, a power of two), bytes (of places).
    """

    phases: Sequence[tuple[str, float]]
    timeline: pa.Table
    blocks: pa.Table
    rewrites: pa.Table
    writes_per_place: pa.Table


def area(structure: str, journal_structures: frozenset[str]) -> str:
    """Return which of `AREAS` a structure belongs to."""
    if structure in journal_structures:
        return JOURNAL
    return _AREAS_BY_STRUCTURE.get(structure, OTHER)


def maps(explanation: Explanation, phases: Sequence[str]) -> Maps | None:
    """Compute the maps of these phases; None if nothing was written, or no times are known."""
    if not explanation.is_timed:
        return None
    chosen = explanation.within(phases)
    bounds = _Bounds()
    chosen.prepare([], bounds)
    if not bounds.edges:
        return None
    begins = {mark.name: mark.at_ns for mark in explanation.marks if mark.name in phases}
    first = min(bounds.first_ns, *begins.values())
    width_ns = max(1, -(-(bounds.last_ns + 1 - first) // SLICES))
    disks = {name: _Disk(*edges.stretches()) for name, edges in bounds.edges.items()}
    collector = _Collector(first, width_ns, disks, explanation.journal_structures)
    chosen.prepare([], collector)
    starts = [(name, (at_ns - first) / 1e9) for name, at_ns in begins.items()]
    return Maps(starts, collector.timeline(), collector.blocks(), *_rewrites(disks))


class _Edges:
    """Boundaries of the writes on one disk, from which the number of writes of each range
    follows."""

    def __init__(self) -> None:
        # An edge is encoded as twice its offset, plus one if a write ends there: sorting plain
        # numbers is several times faster than sorting pairs.
        self._new: list[Numbers] = []
        self._waiting = 0
        self._places, self._changes = np.zeros(0, np.int64), np.zeros(0, np.int32)

    def add(self, offset: Numbers, length: Numbers) -> None:
        """Add extents."""
        self._new.append(np.concatenate([offset * 2, (offset + length) * 2 + 1]))
        self._waiting += 2 * len(offset)
        if self._waiting > _MOST_EDGES:
            self._settle()

    def stretches(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return begin, end and number of writes of each range that was written equally often."""
        self._settle()
        writes = np.cumsum(self._changes, dtype=np.int64)[:-1]
        is_written = writes > 0
        return self._places[:-1][is_written], self._places[1:][is_written], writes[is_written]

    def _settle(self) -> None:
        if not self._new:
            return
        edges = np.concatenate(self._new)
        self._new, self._waiting = [], 0
        # Touching new memory takes longer than all the rest, so the steps work in place.
        edges.sort()
        changes = 1 - 2 * (edges & 1).astype(np.int32)
        edges >>= 1
        if len(self._places):
            edges = np.concatenate([self._places, edges])
            changes = np.concatenate([self._changes, changes])
            order = np.argsort(edges, kind="stable")  # merges the two sorted parts
            edges, changes = edges[order], changes[order]
        is_first = np.ones(len(edges), bool)
        np.not_equal(edges[1:], edges[:-1], out=is_first[1:])
        first = np.flatnonzero(is_first)
        self._places, self._changes = edges[first], np.add.reduceat(changes, first)


class _Bounds:
    """Collector of the first pass: which places of each disk were written, and when."""

    def __init__(self) -> None:
        self.edges: dict[str, _Edges] = {}
        self.first_ns, self.last_ns = np.iinfo(np.int64).max, 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        offset, length, time = (
            numbers(batch.column(name)) for name in ("offset", "length", "time_ns")
        )
        for name, chosen in _by_disk(batch, length):
            self.edges.setdefault(name, _Edges()).add(offset[chosen], length[chosen])
            self.first_ns = min(self.first_ns, int(time[chosen].min()))
            self.last_ns = max(self.last_ns, int(time[chosen].max()))


class _Disk:
    """Written places of one disk, in order and without the gaps between them, because unwritten
    space would take up most of the picture."""

    def __init__(self, begin: Numbers, end: Numbers, writes: Numbers) -> None:
        self.begin, self.end, self.writes = begin, end, writes
        self._before = np.cumsum(end - begin) - (end - begin)
        self.written_bytes = int((end - begin).sum())
        self.row_bytes = max(4096, -(-self.written_bytes // ROWS))
        self._row_offsets = self.offsets(np.arange(1, ROWS) * self.row_bytes)
        self.cells = np.zeros((SLICES, ROWS, len(AREAS)), np.float64)

    def places(self, offset: Numbers) -> Numbers:
        """Return the number of written bytes before each offset, which must lie in a written
        place."""
        # Sort the searches: unsorted ones would stall on memory accesses.
        order = np.argsort(offset)
        stretch = np.empty(len(offset), np.int64)
        stretch[order] = np.searchsorted(self.begin, offset[order], "right") - 1
        found: Numbers = self._before[stretch] + offset - self.begin[stretch]
        return found

    def offsets(self, place: Numbers) -> Numbers:
        """Return the offset of each place."""
        stretch = np.searchsorted(self._before, place, "right") - 1
        past = np.minimum(place - self._before[stretch], (self.end - self.begin)[stretch])
        found: Numbers = self.begin[stretch] + past
        return found

    def most_writes(self, size: int) -> Numbers:
        """Return the most writes of any byte in each cell of `size` written bytes."""
        edges = np.arange(0, self.written_bytes, size)
        # Ranges follow each other without gaps, so those that overlap a cell are neighbours.
        first = np.searchsorted(self._before, edges, "right") - 1
        end = np.append(np.searchsorted(self._before, edges[1:], "left"), len(self.writes))
        # reduceat rejects an index equal to the length, so one more value is appended.
        pairs = np.column_stack([first, end]).ravel()
        most: Numbers = np.maximum.reduceat(np.append(self.writes, 0), pairs)[::2]
        return most

    def add(self, slices: Numbers, areas: Numbers, offset: Numbers, length: Numbers) -> None:
        """Add extents. An extent that spans several cells counts in each with the bytes there."""
        row = np.searchsorted(self._row_offsets, offset, "right")
        spans = np.searchsorted(self._row_offsets, offset + length, "left") > row
        cell = (slices * ROWS + row) * len(AREAS) + areas
        self._count(cell, np.where(spans, 0, length))
        # Few extents span several rows. Only these need the place of their bytes.
        slices, areas, offset, length = (each[spans] for each in (slices, areas, offset, length))
        begin = self.places(offset)
        which, row = _cells(begin, begin + length, self.row_bytes)
        least = np.maximum(begin[which], row * self.row_bytes)
        most = np.minimum((begin + length)[which], (row + 1) * self.row_bytes)
        self._count((slices[which] * ROWS + row) * len(AREAS) + areas[which], most - least)

    def _count(self, cell: Numbers, size: Numbers) -> None:
        self.cells += np.bincount(cell, size, self.cells.size).reshape(self.cells.shape)


def _cells(begin: Numbers, end: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Return the cells of `size` bytes that each range overlaps, as pairs of the range's number and
    the cell's."""
    first = begin // size
    counts = (end - 1) // size - first + 1
    which = np.repeat(np.arange(len(begin)), counts)
    within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, first[which] + within


def _by_disk(batch: pa.RecordBatch, length: Numbers) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    disk = batch.column("disk")
    of_rows = disk.indices.to_numpy(zero_copy_only=False)
    for number, name in enumerate(disk.dictionary.to_pylist()):
        chosen = (of_rows == number) & (length > 0)
        if chosen.any():
            yield str(name), chosen


class _Collector:
    """Collector of all maps, in one pass over the rows."""

    def __init__(
        self,
        begin_ns: int,
        width_ns: int,
        disks: dict[str, _Disk],
        journal_structures: frozenset[str],
    ) -> None:
        self._begin_ns = begin_ns
        self._width_ns = width_ns
        self._disks = disks
        self._journal = journal_structures
        self._causes: dict[str, npt.NDArray[np.float64]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        offset, length, time = (
            numbers(batch.column(name)) for name in ("offset", "length", "time_ns")
        )
        slices = np.clip((time - self._begin_ns) // self._width_ns, 0, SLICES - 1)
        causes = batch.column("cause")
        known = causes.indices.fill_null(len(causes.dictionary)).to_numpy(zero_copy_only=False)
        names = [carried_cause(name) for name in (*causes.dictionary.to_pylist(), "unknown")]
        cells = np.bincount(slices * len(names) + known, length, SLICES * len(names))
        sums = cells.astype(np.float64).reshape(SLICES, len(names))
        for number, name in enumerate(names):
            if sums[:, number].any():
                before = self._causes.get(name)
                self._causes[name] = sums[:, number] if before is None else before + sums[:, number]
        areas = self._areas(batch)
        for name, chosen in _by_disk(batch, length):
            self._disks[name].add(slices[chosen], areas[chosen], offset[chosen], length[chosen])

    def _areas(self, batch: pa.RecordBatch) -> Numbers:
        column = batch.column("structure")
        areas = [area(str(name), self._journal) for name in column.dictionary.to_pylist()]
        indices = column.indices.fill_null(len(areas)).to_numpy(zero_copy_only=False)
        found: Numbers = np.array([*map(AREAS.index, (*areas, UNKNOWN))], np.int64)[indices]
        return found

    def timeline(self) -> pa.Table:
        """Return the bytes of each slice and cause."""
        return pa.Table.from_pylist(
            [
                {
                    "slice_begin_s": number * self._width_ns / 1e9,
                    "slice_end_s": (number + 1) * self._width_ns / 1e9,
                    "cause": cause,
                    "write_bytes": int(sums[number]),
                }
                for cause, sums in self._causes.items()
                for number in np.flatnonzero(sums)
            ]
        )

    def blocks(self) -> pa.Table:
        """Return the cells in which something was written."""
        tables = []
        for name, disk in self._disks.items():
            whole = disk.cells.sum(axis=2)
            slices, rows = np.nonzero(whole)
            most = disk.cells[slices, rows].argmax(axis=1)
            tables.append(
                pa.table(
                    {
                        "disk": [name] * len(slices),
                        "slice_begin_s": slices * (self._width_ns / 1e9),
                        "slice_end_s": (slices + 1) * (self._width_ns / 1e9),
                        "row": rows,
                        "offset_bytes": disk.offsets(rows * disk.row_bytes),
                        "area": pa.array(AREAS).take(pa.array(most)),
                        "write_bytes": whole[slices, rows].astype(np.int64),
                    }
                )
            )
        return pa.concat_tables(tables)


def carried_cause(name: str) -> str:
    """Cause of a row, or `MIXED`. A journal's own blocks count towards the cause they carry:
    `directory_entries+log` counts as `directory_entries` alone."""
    causes = name.split("+")
    carried = [cause for cause in causes if cause not in ("log", "padding")] or causes
    return carried[0] if len(carried) == 1 else MIXED


def _rewrites(disks: dict[str, _Disk]) -> tuple[pa.Table, pa.Table]:
    """Return the map of rewrites, and the bytes of places by how often they were written."""
    cells = REWRITE_COLUMNS * REWRITE_ROWS
    tables, classes = [], np.zeros(64, np.int64)
    for name, disk in disks.items():
        size = max(4096, -(-disk.written_bytes // cells))
        most = disk.most_writes(size)
        used = np.flatnonzero(most)
        tables.append(
            pa.table(
                {
                    "disk": [name] * len(used),
                    "column": used % REWRITE_COLUMNS,
                    "row": used // REWRITE_COLUMNS,
                    "offset_bytes": disk.offsets(used * size),
                    "most_writes": most[used],
                }
            )
        )
        for begin in range(0, len(disk.writes), _PIECE):
            piece = slice(begin, begin + _PIECE)
            exponents = np.ceil(np.log2(disk.writes[piece])).astype(np.int64)
            sizes = disk.end[piece] - disk.begin[piece]
            classes += np.bincount(exponents, sizes, len(classes)).astype(np.int64)
    used = np.flatnonzero(classes)
    return pa.concat_tables(tables), pa.table({"most_writes": 2**used, "bytes": classes[used]})
