"""Reader for a run's folder. Its content is untrusted."""

import gc
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fscost import files
from fscost.errors import InputError
from fscost.results import journal, limits
from fscost.results.manifest import REMEDY, CellRecord, Manifest, with_cells
from fscost.results.renamed import with_present_names
from fscost.results.table import SCHEMA, digest, to_table

MANIFEST = "manifest.json"
SAMPLES = "samples.parquet"
CELLS = "cells"
INPUTS = "inputs"
ACTIVITY = "activity"
MINIMISED = "minimised"
"""Holds the runs with the fewest operations that have the faults of this one's states."""
POWER_CUTS = "crash"
"""Holds the run of the power cuts that were made beside this one."""
_FOLDERS = (CELLS, INPUTS, ACTIVITY, MINIMISED, POWER_CUTS)
"""Folders in which fscost writes and removes files. A link in place of one would lead elsewhere."""
_LARGEST_VALUE = 1e100
"""More than anything measured; sums and squares of such numbers are still numbers."""
_LONGEST_TEXT_BYTES = 4096


@dataclass(frozen=True)
class RunResults:
    """A run: its manifest and the samples of its finished cells."""

    folder: Path
    manifest: Manifest
    samples: pa.Table

    @property
    def is_emulated(self) -> bool:
        """True if the cells ran in emulated guests, whose times are virtual."""
        return "virtual_s" in self.samples["unit"].unique().to_pylist()


def load(folder: Path, *, trust: bool = False) -> RunResults:
    """Load a run's folder. An InputError names the file, the field and the remedy. A folder that
    other users control is refused unless it is trusted."""
    try:
        with _no_cycles(), files.own_folder(folder, _FOLDERS, trust=trust) as opened:
            manifest, sha256 = _manifest(folder, opened)
            entries = journal.read(folder, opened, sha256)
            if entries:
                cells = [entry.cell for entry in entries]
                path = folder / journal.JOURNAL
                manifest = with_cells(path, manifest, cells, entries[-1].elapsed_s)
            samples = _samples(folder, opened, manifest, entries)
            return RunResults(folder, *with_present_names(manifest, samples))
    except OSError as error:
        raise InputError(
            f"{folder} holds no run: {error.strerror}", "name the folder that `fscost compare` made"
        ) from error


@contextmanager
def _no_cycles() -> Iterator[None]:
    """Turn garbage collection off: the values of a file hold no cycles, and looking for some takes
    a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def salvaged(folder: Path, *, trust: bool = False) -> tuple[RunResults, list[str]]:
    """Load a run whose samples may be missing or damaged, with one sentence for each such loss.
    InputError if the manifest cannot be read, because nothing else identifies the samples."""
    try:
        return load(folder, trust=trust), []
    except InputError as error:
        try:
            with files.own_folder(folder, _FOLDERS, trust=trust) as opened:
                manifest, _ = _manifest(folder, opened)
        except OSError:
            raise error from None
        return RunResults(folder, manifest, to_table(())), [
            f"samples are missing: {error.what}; {len(manifest.done)} finished cells are not shown"
        ]


def kept_recording(folder: Path, cell: CellRecord) -> Path | None:
    """Path of a cell's recording, or None. A manifest is untrusted: a path that leads out of the
    run's folder is ignored."""
    path = folder / cell.recording
    if not cell.recording or not path.is_file():
        return None
    return path if path.resolve().is_relative_to(folder.resolve()) else None


def _open(folder: Path, opened: int, name: str) -> BufferedReader:
    try:
        return files.open_regular(Path(name), opened)
    except InputError as error:
        raise InputError(f"{folder / error.what}", REMEDY) from error


def _manifest(folder: Path, opened: int) -> tuple[Manifest, str]:
    """Read the manifest, and the SHA-256 of its file."""
    path = folder / MANIFEST
    try:
        with _open(folder, opened, MANIFEST) as file:
            content = files.content(file, limits.LARGEST_MANIFEST_BYTES)
    except OSError as error:
        raise InputError(
            f"{folder} holds no run: {MANIFEST}: {error.strerror}",
            "name the folder that `fscost compare` made",
        ) from error
    if content is None:
        most = f"{limits.LARGEST_MANIFEST_BYTES >> 20} MiB"
        raise InputError(f"{path} is larger than {most}: not a manifest of fscost", REMEDY)
    if limits.values(content) > limits.MOST_VALUES:
        raise _damaged(path, f"more than {limits.MOST_VALUES:,} values: not a manifest of fscost")
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _damaged(path, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"not JSON: {error}") from error
    return Manifest.from_json(path, value), hashlib.sha256(content).hexdigest()


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{path}: {what}", REMEDY)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _samples(
    folder: Path, opened: int, manifest: Manifest, entries: Sequence[journal.Entry]
) -> pa.Table:
    path = folder / SAMPLES
    try:
        with _open(folder, opened, SAMPLES) as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
            # Not Python's file: Arrow's threads may drop it while the interpreter ends, which
            # aborts (https://github.com/apache/arrow/issues/34314 and 50482).
            with pa.OSFile(f"/proc/self/fd/{source.fileno()}") as opened_again:
                with pq.ParquetFile(opened_again) as file:
                    _check_size(path, source, file.metadata)
                    _check_columns(path, file.schema_arrow)
                found = pq.ParquetFile(opened_again, read_dictionary=limits.TEXTS)
                table = found.read(columns=SCHEMA.names)
        table.validate(full=True)
        _check_texts(path, table)
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error
    except (pa.ArrowException, ValueError) as error:
        raise _damaged(path, f"not the Parquet file that fscost wrote: {error}") from error
    for name in SCHEMA.names:
        if table[name].null_count:
            raise _damaged(path, f"column {name} has empty values")
    if entries:
        table = table.cast(SCHEMA)
        # A writer that was killed between its two files left their samples here, too.
        cells = pa.array([entry.cell.cell for entry in entries], pa.string())
        table = table.filter(pc.invert(pc.is_in(table["cell"], cells)))
        table = pa.concat_tables([table, _of_journal(folder / journal.JOURNAL, entries)])
    table = _check_values(path, table, manifest).cast(SCHEMA)
    # The digests of 100,000 cells take ten times as long as the rest.
    in_journal = {entry.cell.cell for entry in entries}
    is_whole = bool(manifest.samples_sha256) and sha256 == manifest.samples_sha256
    _check_digests(path, table, manifest, in_journal if is_whole else None)
    return table


def _of_journal(path: Path, entries: Sequence[journal.Entry]) -> pa.Table:
    rows = [row for entry in entries for row in entry.rows]
    if any(len(row) != len(SCHEMA) for row in rows):
        raise _damaged(path, f"a row does not have {len(SCHEMA)} values")
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    try:
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)
        ]
        table = pa.Table.from_arrays(arrays, schema=SCHEMA)
        table.validate(full=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise _damaged(path, f"not the samples that fscost wrote: {error}") from error
    if any(column.null_count for column in table.columns):
        raise _damaged(path, "a row has empty values")
    return table


def _check_size(path: Path, source: IO[bytes], claims: pq.FileMetaData) -> None:
    """Check, before anything is unpacked, the size of the file and the size it claims to unpack
    to."""
    if os.fstat(source.fileno()).st_size > limits.LARGEST_SAMPLES_BYTES:
        most = f"{limits.LARGEST_SAMPLES_BYTES >> 20} MiB"
        raise InputError(f"{path} is larger than {most}: not a samples file of fscost", REMEDY)
    if claims.num_rows > limits.MOST_SAMPLES:
        raise _damaged(path, f"claims {claims.num_rows} samples")
    # Not from the claims of the columns: pyarrow 26 aborts on a column whose size statistics are
    # damaged, because nothing catches what the constructor of ColumnChunkMetaData throws.
    groups = (claims.row_group(number) for number in range(claims.num_row_groups))
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > limits.LARGEST_SAMPLES_BYTES:
        raise _damaged(path, f"unpacks to {unpacked} bytes, too many for a table of fscost")


def _check_texts(path: Path, table: pa.Table) -> None:
    """Check the size of all texts once expanded: a text that many rows share is stored only
    once."""
    total = 0
    for name in limits.TEXTS:
        for chunk in table[name].chunks:
            lengths = pc.binary_length(chunk.dictionary)
            if (pc.max(lengths).as_py() or 0) > _LONGEST_TEXT_BYTES:
                too_long = f"a string of more than {_LONGEST_TEXT_BYTES} bytes"
                raise _damaged(path, f"column {name} has {too_long}")
            total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    if total > limits.LARGEST_SAMPLES_BYTES:
        raise _damaged(path, f"its strings have {total} bytes, too many for a table of fscost")


def _check_columns(path: Path, schema: pa.Schema) -> None:
    for field in SCHEMA:
        if schema.names.count(field.name) != 1:
            raise _damaged(path, f"column {field.name} is missing or duplicated")
        found = schema.field(field.name).type
        if found != field.type:
            raise _damaged(path, f"column {field.name} is {found}, not {field.type}")


def _check_values(path: Path, table: pa.Table, manifest: Manifest) -> pa.Table:
    if not pc.all(pc.is_finite(table["value"]), min_count=0).as_py():
        raise _damaged(path, "column value holds something that is not a finite number")
    if pc.any(pc.greater(pc.abs(table["value"]), _LARGEST_VALUE), min_count=0).as_py():
        raise _damaged(path, f"column value holds a number beyond {_LARGEST_VALUE:g}")
    owners = {record.cell: record.profile for record in manifest.done}
    cells = _encoded(table, "cell")
    is_done = pc.is_in(cells.dictionary, pa.array(owners, pa.string()))
    if not pc.all(is_done, min_count=0).as_py():
        table = table.filter(is_done.take(cells.indices))
        cells = _encoded(table, "cell")
    profiles = _encoded(table, "profile")
    expected = pa.array([owners[cell] for cell in cells.dictionary.to_pylist()], pa.string())
    expected = pc.index_in(expected, profiles.dictionary).fill_null(-1).take(cells.indices)
    wrong = table.filter(pc.not_equal(profiles.indices, expected)).select(["cell", "profile"])
    if wrong.num_rows:
        cell, profile = min((row["cell"], row["profile"]) for row in wrong.to_pylist())
        raise _damaged(
            path,
            f"cell {cell!r} belongs to profile {profile!r} here and to"
            f" {owners[cell]!r} in {MANIFEST}",
        )
    for cell in owners.keys() - set(cells.dictionary.to_pylist()):
        raise _damaged(path, f"cell {cell!r} is done in {MANIFEST} but has no samples")
    columns = [cells, *(_encoded(table, name) for name in ("phase", "disk", "metric"))]
    keys = _keys(columns)
    # Not count_distinct, which takes 250 bytes and ten times as long for each key.
    ordered = keys.take(pc.sort_indices(keys))
    if pc.any(pc.equal(ordered[1:], ordered[:-1])).as_py():
        raise _damaged(path, "two samples have the same cell, phase, disk and metric")
    return table


def _encoded(table: pa.Table, name: str) -> pa.DictionaryArray:
    """Return a column as numbers, and a dictionary of the values that occur; the dictionary of a
    file may have others."""
    column = table[name]
    if not pa.types.is_dictionary(column.type):
        return column.combine_chunks().dictionary_encode()
    found = column.unify_dictionaries().combine_chunks()
    if len(pc.unique(found.indices)) == len(found.dictionary):
        return found
    return found.cast(pa.string()).dictionary_encode()


def _keys(columns: Iterable[pa.DictionaryArray]) -> pa.Array:
    """Return a number for each combination of the columns' values, because numbers are compared
    faster than texts. Only a damaged file has so many that their product exceeds 64 bits. Not
    `group_by`, which imports the whole of pyarrow.dataset for each `fscost show`."""
    key = pa.scalar(0, pa.int64())
    for column in columns:
        key = pc.add(pc.multiply(key, max(1, len(column.dictionary))), column.indices)
    return key


def _check_digests(
    path: Path, table: pa.Table, manifest: Manifest, cells: Collection[str] | None
) -> None:
    """Check the samples of these cells, or of all."""
    digests = {
        record.cell: record.samples_sha256
        for record in manifest.done
        if record.samples_sha256 and (cells is None or record.cell in cells)
    }
    if not digests:
        return
    if cells is not None:
        table = table.filter(pc.is_in(table["cell"], pa.array(digests, pa.string())))
    by_cell = _by_cell(table)
    for cell, expected in digests.items():
        if digest(by_cell[cell]) != expected:
            raise _damaged(path, f"the samples of cell {cell!r} do not match {MANIFEST}")


def _by_cell(table: pa.Table) -> dict[str, pa.Table]:
    """Split samples by cell, in time that does not grow with the square of the cells. The rows of a
    cell keep their order, because the sort is stable."""
    ordered = table.take(pc.sort_indices(table["cell"]))
    counts = pc.value_counts(table["cell"]).to_pylist()
    found, begin = {}, 0
    for cell, length in sorted((each["values"], each["counts"]) for each in counts):
        found[cell] = ordered.slice(begin, length)
        begin += length
    return found
