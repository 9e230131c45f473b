"""Content of every write of a recording, sector by sector."""

import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tests.oracles.tagged_tree import MAGIC, SECTOR, TAG, checksum

from fscost import capture

ENTRY = struct.Struct("<QQQQ")
"""Entry of a dm-log-writes log (drivers/md/dm-log-writes.c): sector, sectors, flags, length of a
mark's text."""
NO_CONTENT = 4 | 8
"""Flags of a discard and of a mark."""
WRITES = ("write", "write_zeroes")


@dataclass
class Content:
    """Content by sector written, in the order of completion."""

    event: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    """The sector's byte offset on the disk."""
    bytes: npt.NDArray[np.uint8]

    @cached_property
    def is_tagged(self) -> npt.NDArray[np.bool_]:
        """Mask of the sectors that begin with a complete tag."""
        found = (self.bytes[:, : len(MAGIC)] == np.frombuffer(MAGIC, dtype=np.uint8)).all(axis=1)
        for index in np.nonzero(found)[0].tolist():
            _, *numbers, expected = TAG.unpack_from(self.bytes[index])
            found[index] = checksum(*numbers) == expected
        return found

    def field(self, offset: int, kind: str) -> npt.NDArray[np.int64]:
        """Return one number of each sector's tag; it is meaningful only for tagged sectors."""
        width = np.dtype(kind).itemsize
        return (
            np.ascontiguousarray(self.bytes[:, offset : offset + width])
            .view(kind)[:, 0]
            .astype(np.int64)
        )


def read(recording: Path, disk: int, scratch: Path) -> Content:
    """Read everything that was written to a disk; `scratch` is a file that does not exist yet."""
    with capture.opened(recording) as source:
        block = source.info()["disks"][disk]["logical_block_bytes"]
        with scratch.open("w+b") as log:
            source.export_dm_log_writes(disk, log.fileno(), str(scratch), lambda _: None)
        name = source.info()["disks"][disk]["name"]
        requests = pa.Table.from_batches(map(pa.record_batch, source.requests()))
    is_write = pc.field("op").isin(WRITES) & (pc.field("length") > 0)
    writes = requests.filter((pc.field("disk") == name) & is_write)
    event, offsets, lengths = (
        writes[column].to_numpy().astype(np.int64) for column in ("event", "offset", "length")
    )
    log = np.memmap(scratch, dtype=np.uint8, mode="r")
    scratch.unlink()
    pieces, at = [], block
    for offset, length in zip(offsets.tolist(), lengths.tolist(), strict=True):
        done = 0
        while done < length:
            sector, sectors, flags, text = ENTRY.unpack_from(log, at)
            at += block
            if flags & NO_CONTENT or not sectors:
                assert flags & 8 or not text
                continue
            assert sector * block == offset + done
            pieces.append(log[at : at + sectors * block])
            at += sectors * block
            done += sectors * block
    counts = lengths // SECTOR
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places = np.repeat(offsets, counts) + (np.arange(counts.sum()) - first) * SECTOR
    return Content(
        np.repeat(event, counts),
        places,
        np.concatenate(pieces).reshape(-1, SECTOR),
    )
