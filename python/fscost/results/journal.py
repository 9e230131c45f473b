"""Cells that finished since a run's files were last written whole: one line of JSON each, so that
keeping a cell costs the same however many there are."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fscost import files, typed
from fscost.errors import InputError
from fscost.results.manifest import REMEDY, CellRecord
from fscost.results.table import SCHEMA, SampleRow

JOURNAL = "journal.jsonl"
_LARGEST_BYTES = 128 << 20


@dataclass(frozen=True)
class Entry(typed.Table):
    """A finished cell. `after`: SHA-256 of the manifest that it follows; a cell that follows an
    earlier one is in the manifest already, or was dropped. `rows`: its samples, as the values of
    each row in the order of the table's columns."""

    after: str
    elapsed_s: float
    cell: CellRecord
    rows: typed.List[typed.List[Any]]


def append(folder: Path, entry: Entry) -> None:
    """Append an entry, and make it durable."""
    line = json.dumps(asdict(entry), ensure_ascii=False, allow_nan=False)
    path = folder / JOURNAL
    # Closing the file writes, too, what a full disk refused before.
    with files.reported(path), files.growing(path, again=True) as file:
        file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(folder: Path, opened: int, manifest_sha256: str) -> list[Entry]:
    """Read the entries that follow a manifest. A last line that was being written when the run was
    killed is ignored. The content is untrusted."""
    path = folder / JOURNAL
    try:
        with files.open_regular(Path(JOURNAL), opened) as file:
            content = files.content(file, _LARGEST_BYTES)
    except FileNotFoundError:
        return []
    if content is None:
        raise InputError(f"{path} is larger than {_LARGEST_BYTES >> 20} MiB", REMEDY)
    found = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
            entry = typed.read(Entry, value)
        except (ValueError, RecursionError, typed.InvalidError) as error:
            raise InputError(f"{path}, line {number}: {error}", REMEDY) from error
        if entry.after == manifest_sha256:
            found.append(entry)
    return found


def values_of(rows: Sequence[SampleRow]) -> list[list[Any]]:
    """Return samples in the form of an entry."""
    return [[getattr(row, name) for name in SCHEMA.names] for row in rows]


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
