"""The tree that tagged_work.py writes: its files, their names and the content of their sectors.

The module needs the standard library only, so that it runs in guests.
"""

import contextlib
import errno
import os
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
TAG = struct.Struct("<8sIIQHI")
"""Magic, identity, action, offset in the file, length of the path, and a checksum of these; the
path follows in capitals, so that no name on the disk is mistaken for it."""
MAGIC = b"\x9dTagged\x9d"
LEAST_TAIL = 256
"""Maximum size of a tag in a sector; no file ends within these bytes."""
LONGEST_PATH = LEAST_TAIL - TAG.size
MIB = 1 << 20
Name = tuple[int, str]
"""A directory's identity and a name in that directory."""


def checksum(*numbers: int) -> int:
    """Return the checksum of a tag: compressed data may begin like a tag and continue
    differently."""
    return zlib.crc32(struct.pack("<IIQH", *numbers))


@dataclass(eq=False)
class File:
    identity: int
    names: list[Name] = field(default_factory=list)
    descriptor: int | None = None
    """Open file descriptor while the file is held open."""


class Tree:
    """A tree of files and directories that grows, changes and shrinks."""

    def __init__(self, *, is_long: bool, filler: str) -> None:
        self.rng = random.Random()
        self.action = 0
        self.identities = 0
        self.serial = 0
        self.files: list[File] = []
        self.folders: dict[int, Name | None] = {0: None}
        self.is_long = is_long
        self.filler = filler

    # The journal.

    def tell(self, kind: str, *words: object) -> None:
        print(kind, self.action, *words, sep="\t")

    def born(self, inode: int) -> int:
        self.identities += 1
        self.tell("BORN", self.identities, inode)
        return self.identities

    def gained(self, file: File, name: Name) -> None:
        file.names.append(name)
        self.tell("GAINED", file.identity, *name)

    def dropped(self, file: File, name: Name) -> None:
        file.names.remove(name)
        self.tell("DROPPED", file.identity, *name)
        if not file.names and file.descriptor is None:
            self.files.remove(file)

    # Paths.

    def path(self, name: Name) -> Path:
        folder, last = name
        above = self.folders[folder]
        return (self.path(above) if above else Path()) / last

    def fresh(self, folder: int | None = None) -> Name:
        """Return a name that was never used."""
        long = "-so-that-the-directory-grows" * self.rng.choice((0, 0, 0, 1, 2))
        self.serial += 1
        return (
            self.rng.choice(list(self.folders)) if folder is None else folder
        ), f"n{self.serial:06d}{long}"

    def named(self) -> list[File]:
        return [file for file in self.files if file.names]

    def any(self) -> File:
        if not self.named():
            self.create()
            self.action += 1
        return self.rng.choice(self.named())

    @contextlib.contextmanager
    def opened(self, file: File, flags: int = 0) -> Iterator[int]:
        if file.descriptor is not None and not flags:
            yield file.descriptor
            return
        if not file.names:
            raise OSError(errno.EINVAL, "it has no name")
        descriptor = os.open(self.path(self.rng.choice(file.names)), os.O_RDWR | flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    # Content.

    def tagged(self, file: File, start: int, length: int) -> bytearray:
        path = (
            (f"/{self.path(file.names[0])}" if file.names else "").upper().encode()[-LONGEST_PATH:]
        )
        content = bytearray(self.filled(length))
        for at in range(0, length, SECTOR):
            numbers = (file.identity, self.action, start + at, len(path))
            head = TAG.pack(MAGIC, *numbers, checksum(*numbers)) + path
            content[at : at + len(head)] = head
        return content

    def filled(self, length: int) -> bytes:
        match self.filler:
            case "random":
                return random.Random(self.action).randbytes(length)
            case "numbers":  # that look like the addresses of blocks
                first = 4096 + self.rng.randrange(1 << 14)
                return struct.pack(f"<{length // 4 + 1}I", *range(first, first + length // 4 + 1))[
                    :length
                ]
            case _:
                return b"." * length

    def length(self) -> int:
        """Return a mostly small length: whole sectors, or a last sector that has room for its
        tag."""
        length = min(int(self.rng.paretovariate(0.5) * 500), self.rng.choice((MIB // 8, MIB // 2)))
        return length + LEAST_TAIL if 0 < length % SECTOR < LEAST_TAIL else length

    def place(self, size: int) -> int:
        """Return an offset within the file or beyond its end."""
        return self.rng.choice(
            (
                0,
                self.rng.randrange(size // SECTOR + 1) * SECTOR,
                self.rng.randrange(2 * size // SECTOR + 64) * SECTOR,
            )
        )

    def put(self, file: File, descriptor: int, start: int, length: int) -> None:
        os.pwrite(descriptor, self.tagged(file, start, length), start)

    def synced(self, file: File, descriptor: int, call: Callable[[int], None] = os.fsync) -> None:
        call(descriptor)
        self.tell("SYNCED", file.identity)

    def sometimes_synced(self, file: File, descriptor: int, share: float = 0.15) -> None:
        if self.rng.random() < share:
            self.synced(file, descriptor, self.rng.choice((os.fsync, os.fdatasync)))

    def made(self, name: Name, flags: int = os.O_CREAT | os.O_EXCL) -> tuple[File, int]:
        descriptor = os.open(self.path(name), os.O_RDWR | flags, 0o644)
        file = File(self.born(os.fstat(descriptor).st_ino))
        self.files.append(file)
        self.gained(file, name)
        return file, descriptor
