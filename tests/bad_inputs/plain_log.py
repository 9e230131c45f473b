"""A dm-log-writes log that is the same everywhere: its imported data lies at known bytes."""

import random
import struct
from pathlib import Path

_SECTOR_BYTES = 512
_MAGIC = 0x6A736677736872
_SECTORS = 128
_ENTRIES = 6


def write(path: Path) -> None:
    """Write a log with six writes of 64 KiB of incompressible data."""
    rng = random.Random(11)
    with path.open("wb") as log:
        log.write(_sector(struct.pack("<QQQI", _MAGIC, 1, _ENTRIES, _SECTOR_BYTES)))
        for number in range(_ENTRIES):
            log.write(_sector(struct.pack("<QQQQ", number * _SECTORS, _SECTORS, 0, 0)))
            log.write(rng.randbytes(_SECTORS * _SECTOR_BYTES))


def _sector(head: bytes) -> bytes:
    return head.ljust(_SECTOR_BYTES, b"\0")
