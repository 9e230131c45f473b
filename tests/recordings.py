"""Recordings of few bytes with many requests, made without fscost (docs/recording-format.md)."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

EVENTS_PER_FRAME = 4096
READ, WRITE, FLUSH, DISCARD, ZEROES, MARK = 0, 1, 2, 3, 4, 6
_PIECE_BYTES = 1 << 16
_ZSTD = pa.Codec("zstd", compression_level=19)


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return table


_CRC_TABLE = _crc_table()


def crc32c(content: bytes) -> int:
    """Return the CRC-32C of RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _zstd(content: bytes) -> bytes:
    found: bytes = _ZSTD.compress(content, asbytes=True)
    return found


def event(op: int, offset: int = 0, length: int = 0, at: int = 0) -> bytes:
    """Return an event of the first disk; `at` is the place of its content."""
    return struct.pack("<QQQQIHBB", 0, 0, offset, length, at, 0, op, 0)


@dataclass(frozen=True)
class Body:
    """A frame without its number."""

    events: Sequence[bytes]
    content: bytes = b""

    def rest(self) -> tuple[bytes, bytes]:
        """Return the fields of the header after the sequence number, and what follows it."""
        raw = [
            self.content[at : at + _PIECE_BYTES] for at in range(0, len(self.content), _PIECE_BYTES)
        ]
        pieces = [min(_zstd(each), each, key=len) for each in raw]
        events = _zstd(b"".join(self.events))
        table = b"".join(struct.pack("<II", len(each), crc32c(each)) for each in pieces)
        stored = b"".join(pieces)
        fields = struct.pack(
            "<IIIIIQQI8x",
            *(len(self.events), len(events), len(self.content), len(stored), len(pieces)),
            *(0, 0, crc32c(table + events)),
        )
        return fields, table + events + stored


def mark(name: str, detail: str = "") -> Body:
    """Return a frame of a mark."""
    return mark_of({"name": name, "detail": {"x": detail}})


def mark_of(fields: Mapping[str, object]) -> Body:
    """Return a frame of a mark with these fields."""
    content = json.dumps(fields).encode()
    return Body([event(MARK, 0, len(content))], content)


def write(
    path: Path, bodies: Sequence[tuple[int, Body]], disks: int = 1, size: int = 1 << 30
) -> Path:
    """Write a recording: each body so many times."""
    header = bytearray(64 * (1 + disks))
    header[:16] = struct.pack("<8sHHI", b"FSCOSTRC", 1, disks, len(header))
    for disk in range(disks):
        info = struct.pack("<32sQII", b"disk%d" % disk, size, 512, 4096)
        header[64 + 64 * disk : 64 + 64 * disk + len(info)] = info
    header[60:64] = struct.pack("<I", crc32c(bytes(header)))
    number = 0
    with path.open("wb") as file:
        file.write(header)
        for times, body in bodies:
            fields, rest = body.rest()
            for _ in range(times):
                file.write(_frame(1, number, fields) + rest)
                number += 1
        file.write(_frame(2, number, bytes(48)))
    return path


def _frame(kind: int, number: int, fields: bytes) -> bytes:
    begin = struct.pack("<4sB3xI", b"FRAM", kind, number) + fields
    return begin + struct.pack("<I", crc32c(begin + bytes(4)))
