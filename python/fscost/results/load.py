"""Reading a run's folder back. Nothing in it is trusted."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fscost.errors import InputError
from fscost.results.fields import REMEDY, Fields
from fscost.results.manifest import Manifest
from fscost.results.table import SCHEMA

MANIFEST = "manifest.json"
SAMPLES = "samples.parquet"
_LARGEST_MANIFEST_BYTES = 256 << 20
_MOST_SAMPLES = 20_000_000
"""A run of a hundred cells has some ten thousand; a file that claims more was not written by fscost."""


@dataclass(frozen=True)
class RunResults:
    """A run: its manifest, and the samples of its finished cells."""

    folder: Path
    manifest: Manifest
    samples: pa.Table


def load(folder: Path) -> RunResults:
    """A run's folder. Raises InputError that names the file, the field and what to do."""
    manifest = _manifest(folder)
    return RunResults(folder, manifest, _samples(folder / SAMPLES, manifest))


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        if path.stat().st_size > _LARGEST_MANIFEST_BYTES:
            raise InputError(f"{path} is larger than {_LARGEST_MANIFEST_BYTES >> 20} MiB: no manifest of fscost", REMEDY)
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{folder} holds no run: {MANIFEST}: {error.strerror}", "name the folder that `fscost compare` made") from error
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}", REMEDY) from error
    return Manifest.from_json(Fields(path, value))


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _samples(path: Path, manifest: Manifest) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > _MOST_SAMPLES:
                raise InputError(f"{path}: claims {file.metadata.num_rows} samples", REMEDY)
            _check_columns(path, file.schema_arrow)
            table = file.read(columns=SCHEMA.names)
        table.validate(full=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}", REMEDY) from error
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: not the Parquet file that fscost wrote: {error}", REMEDY) from error
    for name in SCHEMA.names:
        if table[name].null_count:
            raise InputError(f"{path}: column {name} has empty values", REMEDY)
    return _check_values(path, table.cast(SCHEMA), manifest)


def _check_columns(path: Path, schema: pa.Schema) -> None:
    for field in SCHEMA:
        if schema.names.count(field.name) != 1:
            raise InputError(f"{path}: column {field.name} is missing, or there twice", REMEDY)
        found = schema.field(field.name).type
        if found != field.type:
            raise InputError(f"{path}: column {field.name} is {found}, not {field.type}", REMEDY)


def _check_values(path: Path, table: pa.Table, manifest: Manifest) -> pa.Table:
    if not pc.all(pc.is_finite(table["value"]), min_count=0).as_py():
        raise InputError(f"{path}: column value holds something that is no finite number", REMEDY)
    owners = {record.cell: record.profile for record in manifest.done}
    table = table.filter(pc.is_in(table["cell"], pa.array(owners, pa.string())))
    pairs = {(row["cell"], row["profile"]) for row in table.select(["cell", "profile"]).group_by(["cell", "profile"]).aggregate([]).to_pylist()}
    for cell, profile in sorted(pairs):
        if owners[cell] != profile:
            raise InputError(f"{path}: cell {cell!r} is of profile {profile!r} here and of {owners[cell]!r} in {MANIFEST}", REMEDY)
    for cell in owners.keys() - {cell for cell, _ in pairs}:
        raise InputError(f"{path}: cell {cell!r} is done in {MANIFEST} and has no samples", REMEDY)
    key = ["cell", "phase", "disk", "metric"]
    if table.group_by(key).aggregate([]).num_rows != table.num_rows:
        raise InputError(f"{path}: a cell's phase, disk and metric come twice", REMEDY)
    return table
