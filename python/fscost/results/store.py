"""Writer of a run's folder. Each cell is on disk before the next is added, so that SIGKILL leaves
the state after one cell or the next.

The files are rewritten whole when there is a sixteenth more cells; the cells between are in the
journal. So the work for each cell does not grow with their number.
"""

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fscost import files
from fscost.errors import HostError
from fscost.results import journal, limits
from fscost.results.journal import JOURNAL
from fscost.results.load import MANIFEST, SAMPLES, RunResults, load
from fscost.results.manifest import CellRecord, Manifest
from fscost.results.table import SampleRow, digest, to_table

_REMEDY = "find out why fscost cannot write there, then continue with --resume"


class RunStore:
    """The only writer of a run's folder."""

    def __init__(self, folder: Path, manifest: Manifest, samples: pa.Table | None = None) -> None:
        self.folder = folder
        self.manifest = manifest
        self._tables = [to_table(()) if samples is None else samples]
        self._size = limits.of_table(self._tables[0])
        self._saved = 0
        """Number of cells in the manifest that this store wrote last."""
        self._saved_sha256 = ""

    @staticmethod
    def create(folder: Path, manifest: Manifest) -> "RunStore":
        """Create a store in a new or empty folder."""
        try:
            files.make_folder(folder)
        except OSError as error:
            raise HostError(
                f"{folder} cannot be made: {error.strerror}", "name another folder with --out"
            ) from error
        store = RunStore(folder, manifest)
        store.save()
        return store

    @staticmethod
    def reopen(folder: Path, *, trust: bool = False) -> "RunStore":
        """Reopen the folder of an earlier run. A folder that other users control is refused unless
        it is trusted."""
        earlier = load(folder, trust=trust)
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
        return RunStore(folder, earlier.manifest, earlier.samples)

    @property
    def results(self) -> RunResults:
        """Results so far."""
        return RunResults(self.folder, self.manifest, self._samples())

    def add(self, record: CellRecord, rows: Sequence[SampleRow]) -> None:
        """Add a finished cell and its samples, and save. RunFullError, and nothing is changed, if
        the run's files could not be read with it."""
        table = to_table(rows)
        record = replace(record, samples_sha256=digest(table) if rows else "")
        grown = self._size + limits.of_cell(record, table)
        grown.check(reserve=True)
        self._size = grown
        self.manifest.cells.append(record)
        self._tables.append(table)
        if len(self.manifest.cells) - self._saved > self._saved // 16 or not self._saved_sha256:
            self.save()
            return
        values = journal.values_of(rows)
        journal.append(
            self.folder, journal.Entry(self._saved_sha256, self.manifest.elapsed_s, record, values)
        )

    def drop(self, cells: Collection[str]) -> None:
        """Remove finished cells and their samples, and save."""
        # The journal may hold some of them, and others, and follow the manifest that is written
        # below if the samples stay the same.
        self.save()
        self.manifest.cells = [kept for kept in self.manifest.cells if kept.cell not in cells]
        samples = self._samples()
        is_of_them = pc.is_in(samples["cell"], pa.array(sorted(cells), pa.string()))
        self._tables = [samples.filter(pc.invert(is_of_them))]
        self.save()

    def save(self) -> None:
        """Write both files, samples first, so that a manifest never names a cell whose samples are
        not on disk. `load` ignores samples of cells that the manifest does not name.

        RunFullError, and the files stay, if `load` would refuse them."""
        buffer = pa.BufferOutputStream()
        pq.write_table(self._samples(), buffer, compression="zstd")
        samples = buffer.getvalue()
        self.manifest.samples_sha256 = hashlib.sha256(samples).hexdigest()
        text = json.dumps(self.manifest.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        # Command-line arguments that are not UTF-8 (lone surrogates in Python) become JSON escapes.
        content = text.encode("utf-8", "backslashreplace") + b"\n"
        in_manifest = limits.Size(len(content), limits.values(content))
        size = in_manifest + limits.of_table(self._samples())
        size.check(reserve=False)
        for each in (samples.size, _unpacked_bytes(samples)):
            limits.refuse("bytes of samples", each, limits.LARGEST_SAMPLES_BYTES)
        with files.replacing(self.folder / SAMPLES, _REMEDY, follow=False) as file:
            file.write(samples)
        with files.replacing(self.folder / MANIFEST, _REMEDY, follow=False) as file:
            file.write(content)
        self._saved = len(self.manifest.cells)
        self._saved_sha256 = hashlib.sha256(content).hexdigest()
        self._size = size
        (self.folder / JOURNAL).unlink(missing_ok=True)

    def _samples(self) -> pa.Table:
        if len(self._tables) > 1:
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
        return self._tables[0]


def _unpacked_bytes(samples: pa.Buffer) -> int:
    """Return what a Parquet file claims to unpack to."""
    found = pq.read_metadata(pa.BufferReader(samples))
    return sum(found.row_group(number).total_byte_size for number in range(found.num_row_groups))
