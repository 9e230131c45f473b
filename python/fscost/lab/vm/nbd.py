"""A client that fills a disk of the disk server over NBD, before a guest uses it.

The protocol: <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator

from fscost.lab.vm.disks import answering

_GREETING = b"NBDMAGICIHAVEOPT"
_FLAGS = 3  # fixed newstyle, no zeroes
_EXPORT_NAME = 1
_WRITE, _DISCONNECT, _FLUSH = 1, 2, 3
_REQUEST_MAGIC, _REPLY_MAGIC = 0x25609513, 0x67446698
_MOST_BYTES = 1 << 20
"""Longest write."""


def fill(server: str, export: str, image: int) -> None:
    """Write the data of an image, without its holes, to an export of the server at an abstract
    socket, and make it durable. ServerError if the server does not answer."""
    with socket.socket(socket.AF_UNIX) as stream, answering(stream):
        stream.connect(f"\0{server}")
        _begin(stream, export)
        for offset, length in _extents(image):
            _ask(stream, _WRITE, offset, os.pread(image, length, offset))
        _ask(stream, _FLUSH, 0, b"")
        stream.sendall(_request(_DISCONNECT, 0, 0))


def _begin(stream: socket.socket, export: str) -> None:
    greeting = _received(stream, len(_GREETING) + 2)
    if not greeting.startswith(_GREETING):
        raise OSError(errno.EPROTO, "no NBD server")
    name = export.encode()
    option = struct.pack(">L8sLL", _FLAGS, b"IHAVEOPT", _EXPORT_NAME, len(name))
    stream.sendall(option + name)
    _received(stream, 10)


def _request(command: int, offset: int, length: int) -> bytes:
    return struct.pack(">LHHQQL", _REQUEST_MAGIC, 0, command, 0, offset, length)


def _ask(stream: socket.socket, command: int, offset: int, data: bytes) -> None:
    stream.sendall(_request(command, offset, len(data)) + data)
    magic, error, _ = struct.unpack(">LLQ", _received(stream, 16))
    if magic != _REPLY_MAGIC or error:
        raise OSError(error or errno.EPROTO, "the disk server refuses a request")


def _received(stream: socket.socket, count: int) -> bytes:
    # MSG_WAITALL does not wait on a socket with a time limit.
    data = b""
    while len(data) < count:
        part = stream.recv(count - len(data))
        if not part:
            raise OSError(errno.ECONNRESET, "the disk server has ended")
        data += part
    return data


def _extents(image: int) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of data in pieces."""
    end = 0
    while True:
        try:
            begin = os.lseek(image, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data follows
                return
            raise
        end = os.lseek(image, begin, os.SEEK_HOLE)
        for offset in range(begin, end, _MOST_BYTES):
            yield offset, min(_MOST_BYTES, end - offset)
