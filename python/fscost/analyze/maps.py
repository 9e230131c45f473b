"""Where and when bytes were written: millions of rows as a few thousand cells of a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fscost.analyze.explain import Explanation

DATA, JOURNAL, INODES, SPACE, OTHER, RAID, UNKNOWN = AREAS = (
    "file data",
    "journal or log",
    "inodes and names",
    "free space",
    "other metadata",
    "RAID",
    "unknown",
)
"""What a cell of a block map is coloured by: structures, few enough to tell apart."""
_AREA_OF = {
    DATA: "file_data symlink",
    INODES: "inode_table inode_chunk directory directory_index extent_map xattr node mft fs_tree"
    " orphan_file",
    SPACE: "group_descriptors block_bitmap inode_bitmap agf agi agfl free_space_btree inode_btree"
    " free_inode_btree rmap_btree refcount_btree realtime address_table segment_table"
    " allocation_table extent_tree free_space_tree free_space_cache block_group_tree",
    RAID: "parity md_superblock md_bitmap md_partial_parity_log md_resync",
    UNKNOWN: "unknown unused",
}
_AREAS_BY_STRUCTURE = {
    structure: area for area, names in _AREA_OF.items() for structure in names.split()
}
MIXED = "mixed"
"""Several causes at once."""
SLICES, ROWS = 120, 80
"""Cells of a block map: across in time, down in offset."""
REWRITE_COLUMNS, REWRITE_ROWS = 64, 24
"""Cells of a map of rewrites, in the order of offsets, row by row."""
_MOST_EDGES = 1 << 24

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Maps:
    """Tables for pictures. Times are seconds since the first phase shown began.

    - `timeline`: slice_begin_s, slice_end_s, cause (or `MIXED`), write_bytes.
    - `blocks`: disk, slice_begin_s, slice_end_s, row, offset_bytes (at which the row begins), area
      (that of most bytes in the cell), write_bytes. A row is as many bytes of written places as
      each other, in the order of offsets.
    - `rewrites`: disk, column, row, offset_bytes (at which the cell begins), most_writes (of a
      byte). Cells are of equal size, in the order of offsets, row by row.
    - `writes_per_place`: most_writes (the class's upper bound, a power of two), bytes (of places).
    """

    phases: Sequence[tuple[str, float]]
    timeline: pa.Table
    blocks: pa.Table
    rewrites: pa.Table
    writes_per_place: pa.Table


def area(structure: str, journal_structures: frozenset[str]) -> str:
    """Which of `AREAS` a structure belongs to."""
    if structure in journal_structures:
        return JOURNAL
    return _AREAS_BY_STRUCTURE.get(structure, OTHER)


def maps(explanation: Explanation, phases: Sequence[str]) -> Maps | None:
    """Of these phases; None where nothing was written, or no times are known."""
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
    """Where writes begin and end on one disk: how often each stretch of it was written."""

    def __init__(self) -> None:
        # An edge is twice its place, and one more where a write ends: sorting numbers is several
        # times as fast as sorting what belongs to them.
        self._new: list[Numbers] = []
        self._waiting = 0
        self._settled = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, offset: Numbers, length: Numbers) -> None:
        """Take in the next extents."""
        self._new.append(np.concatenate([offset * 2, (offset + length) * 2 + 1]))
        self._waiting += 2 * len(offset)
        if self._waiting > _MOST_EDGES:
            self._settle()

    def stretches(self) -> tuple[Numbers, Numbers, Numbers]:
        """Begin, end and number of writes of each stretch that was written equally often."""
        self._settle()
        edges, counts = self._settled
        first = np.flatnonzero(np.diff(edges >> 1, prepend=-1))
        places = edges[first] >> 1
        changes = np.add.reduceat(np.where(edges & 1, -counts, counts), first)
        writes = np.cumsum(changes)[:-1]
        is_written = writes > 0
        return places[:-1][is_written], places[1:][is_written], writes[is_written]

    def _settle(self) -> None:
        before, counts_before = self._settled
        edges, counts = np.unique(
            np.concatenate([*self._new, np.zeros(0, np.int64)]), return_counts=True
        )
        if len(before):
            edges, inverse = np.unique(np.concatenate([before, edges]), return_inverse=True)
            both = np.concatenate([counts_before, counts])
            counts = np.bincount(inverse, both, len(edges)).astype(np.int64)
        self._settled = edges, counts
        self._new, self._waiting = [], 0


class _Bounds:
    """The first pass: which places of each disk were written, and when."""

    def __init__(self) -> None:
        self.edges: dict[str, _Edges] = {}
        self.first_ns, self.last_ns = np.iinfo(np.int64).max, 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        offset, length, time = (_numbers(batch, name) for name in ("offset", "length", "time_ns"))
        for name, chosen in _by_disk(batch, length):
            self.edges.setdefault(name, _Edges()).add(offset[chosen], length[chosen])
            self.first_ns = min(self.first_ns, int(time[chosen].min()))
            self.last_ns = max(self.last_ns, int(time[chosen].max()))


class _Disk:
    """The written places of one disk, in their order and without the gaps between them: most of a
    disk is never written, and would be most of the picture."""

    def __init__(self, begin: Numbers, end: Numbers, writes: Numbers) -> None:
        self.begin, self.end, self.writes = begin, end, writes
        self._before = np.cumsum(end - begin) - (end - begin)
        self.written_bytes = int((end - begin).sum())
        self.row_bytes = max(4096, -(-self.written_bytes // ROWS))
        self.cells = np.zeros((SLICES, ROWS, len(AREAS)), np.float64)

    def places(self, offset: Numbers) -> Numbers:
        """Bytes of written places before an offset that was written."""
        # In order, or each search would wait for memory.
        order = np.argsort(offset)
        stretch = np.empty(len(offset), np.int64)
        stretch[order] = np.searchsorted(self.begin, offset[order], "right") - 1
        found: Numbers = self._before[stretch] + offset - self.begin[stretch]
        return found

    def offsets(self, place: Numbers) -> Numbers:
        """The offset at which a place is."""
        stretch = np.searchsorted(self._before, place, "right") - 1
        past = np.minimum(place - self._before[stretch], (self.end - self.begin)[stretch])
        found: Numbers = self.begin[stretch] + past
        return found

    def add(self, slices: Numbers, areas: Numbers, offset: Numbers, length: Numbers) -> None:
        """Take in the next extents; one of several cells counts in each with its bytes there."""
        begin = self.places(offset)
        which, row = _cells(begin, begin + length, self.row_bytes)
        least = np.maximum(begin[which], row * self.row_bytes)
        most = np.minimum((begin + length)[which], (row + 1) * self.row_bytes)
        cell = (slices[which] * ROWS + row) * len(AREAS) + areas[which]
        self.cells += np.bincount(cell, most - least, self.cells.size).reshape(self.cells.shape)


def _cells(begin: Numbers, end: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """For each stretch the cells of `size` bytes that it touches: its number, and the cell's."""
    first = begin // size
    counts = (end - 1) // size - first + 1
    which = np.repeat(np.arange(len(begin)), counts)
    within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, first[which] + within


def _by_disk(batch: pa.RecordBatch, length: Numbers) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    disk = batch.column("disk")
    numbers = disk.indices.to_numpy(zero_copy_only=False)
    for number, name in enumerate(disk.dictionary.to_pylist()):
        chosen = (numbers == number) & (length > 0)
        if chosen.any():
            yield str(name), chosen


class _Collector:
    """All maps in one pass over the rows."""

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
        offset, length, time = (_numbers(batch, name) for name in ("offset", "length", "time_ns"))
        slices = np.clip((time - self._begin_ns) // self._width_ns, 0, SLICES - 1)
        causes = batch.column("cause")
        numbers = causes.indices.fill_null(len(causes.dictionary)).to_numpy(zero_copy_only=False)
        names = [_cause(name) for name in (*causes.dictionary.to_pylist(), "unknown")]
        cells = np.bincount(slices * len(names) + numbers, length, SLICES * len(names))
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
        numbers = [
            AREAS.index(area(str(name), self._journal)) for name in column.dictionary.to_pylist()
        ]
        indices = column.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
        found: Numbers = np.array([*numbers, AREAS.index(UNKNOWN)], np.int64)[indices]
        return found

    def timeline(self) -> pa.Table:
        """Bytes of each slice and cause."""
        columns: dict[str, list[object]] = {
            name: [] for name in ("slice_begin_s", "slice_end_s", "cause", "write_bytes")
        }
        for cause, sums in self._causes.items():
            for number in np.flatnonzero(sums):
                columns["slice_begin_s"].append(number * self._width_ns / 1e9)
                columns["slice_end_s"].append((number + 1) * self._width_ns / 1e9)
                columns["cause"].append(cause)
                columns["write_bytes"].append(int(sums[number]))
        return pa.table(columns)

    def blocks(self) -> pa.Table:
        """The cells in which something was written."""
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


def _cause(name: str) -> str:
    """A journal's own blocks count with what they carry: `names+log` is for names alone."""
    causes = name.split("+")
    carried = [cause for cause in causes if cause != "log"] or causes
    return carried[0] if len(carried) == 1 else MIXED


def _numbers(batch: pa.RecordBatch, name: str) -> Numbers:
    found: Numbers = batch.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _rewrites(disks: dict[str, _Disk]) -> tuple[pa.Table, pa.Table]:
    """The map of rewrites, and the bytes of places by how often they were written."""
    cells = REWRITE_COLUMNS * REWRITE_ROWS
    tables, classes = [], np.zeros(64, np.int64)
    for name, disk in disks.items():
        size = max(4096, -(-disk.written_bytes // cells))
        length = disk.end - disk.begin
        begin = np.cumsum(length) - length
        which, cell = _cells(begin, begin + length, size)
        most = np.zeros(cells, np.int64)
        np.maximum.at(most, cell, disk.writes[which])
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
        np.add.at(classes, np.ceil(np.log2(disk.writes)).astype(int), length)
    used = np.flatnonzero(classes)
    return pa.concat_tables(tables), pa.table({"most_writes": 2**used, "bytes": classes[used]})
