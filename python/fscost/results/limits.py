"""Sizes beyond which a run's files are refused, because they may be a stranger's and would fill the
memory. The writer ends a run before, so that fscost reads whatever it wrote."""

import json
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from fscost.errors import HostError
from fscost.results.manifest import CellRecord
from fscost.results.table import SCHEMA

LARGEST_MANIFEST_BYTES = 96 << 20
MOST_VALUES = 16_000_000
"""Maximum number of commas and brackets in a manifest, to bound the memory that its values take.
100,000 cells have about 5 million."""
LARGEST_SAMPLES_BYTES = 256 << 20
"""Maximum size of the file of samples, of what it unpacks to, and of all its texts."""
MOST_SAMPLES = 4_000_000
"""Maximum number of samples. A run of a hundred cells has about ten thousand."""
TEXTS = [field.name for field in SCHEMA if field.type == pa.string()]
_RESERVE = 16
"""A run ends this part of a limit before it, so that the state at its end has room."""
_INDENT_BYTES = 6
"""What indentation adds to each value of a manifest, about."""
_REMEDY = "divide the sweep into several runs"


class RunFullError(HostError):
    """Error for a run whose files can take no further cell."""


@dataclass(frozen=True)
class Size:
    """Size of a run's files: of the manifest in bytes and in values, of the samples in rows and in
    bytes of text."""

    manifest_bytes: int = 0
    values: int = 0
    samples: int = 0
    text_bytes: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(
            self.manifest_bytes + other.manifest_bytes,
            self.values + other.values,
            self.samples + other.samples,
            self.text_bytes + other.text_bytes,
        )

    def check(self, *, reserve: bool) -> None:
        """Raise RunFullError if a limit is passed, or almost."""
        for what, size, limit in (
            ("bytes of its manifest", self.manifest_bytes, LARGEST_MANIFEST_BYTES),
            ("values of its manifest", self.values, MOST_VALUES),
            ("samples", self.samples, MOST_SAMPLES),
            ("bytes of text in its samples", self.text_bytes, LARGEST_SAMPLES_BYTES),
        ):
            refuse(what, size, limit - limit // _RESERVE if reserve else limit)


def refuse(what: str, size: int, limit: int) -> None:
    """Raise RunFullError if a size is above its limit."""
    if size > limit:
        raise RunFullError(f"the run is full: more than {limit:,} {what}", _REMEDY)


def values(content: bytes) -> int:
    """Return the number of commas and brackets of JSON text."""
    return sum(content.count(each) for each in (b",", b"[", b"{"))


def of_cell(record: CellRecord, table: pa.Table) -> Size:
    """Return what a cell adds to the files of its run, about."""
    text = json.dumps(asdict(record), ensure_ascii=False, allow_nan=False)
    content = text.encode("utf-8", "backslashreplace")
    found = values(content)
    return Size(len(content) + _INDENT_BYTES * found, found) + of_table(table)


def of_table(table: pa.Table) -> Size:
    """Return the size of samples."""
    lengths = (pc.sum(pc.binary_length(table[name])).as_py() or 0 for name in TEXTS)
    return Size(samples=table.num_rows, text_bytes=sum(lengths))
