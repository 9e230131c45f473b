"""The tree that tagged_work.py writes: its files, their names and the content of their sectors.

The module needs the standard library only, so that it runs in guests.
"""

import contextlib
import errno
import os
import random
import struct
import sys
import threading
import zlib
from collections import Counter
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


class Journal:
    """Standard output, and the numbers that all workers share."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._running: dict[int, int] = {}
        """The current action of each worker."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["Journal"], tuple[()], dict[str, object]]:
        return Journal, (), {"counts": self.counts}

    @property
    def action(self) -> int:
        """The last action that has begun."""
        return self.counts["action"]

    def next(self, what: str) -> int:
        with self._lock:
            self.counts[what] += 1
            return self.counts[what]

    def begin(self, worker: int) -> int:
        with self._lock:
            self.counts["action"] += 1
            self._running[worker] = self.counts["action"]
            return self._running[worker]

    def end(self, worker: int) -> None:
        with self._lock:
            self._running.pop(worker, None)

    def completed(self, worker: int) -> int:
        """Return the last action before which all workers have completed theirs."""
        with self._lock:
            return min(at - (each != worker) for each, at in self._running.items())

    def write(self, line: str) -> None:
        with self._lock:
            sys.stdout.write(f"{line}\n")


class Tree:
    """A worker's tree of files and directories, which grows, changes and shrinks. Workers share
    the root directory."""

    def __init__(self, journal: Journal, worker: int, *, is_long: bool, filler: str) -> None:
        self.journal = journal
        self.worker = worker
        self.rng = random.Random()
        self.action = 0
        self.files: list[File] = []
        self.folders: dict[int, Name | None] = {0: None}
        self.is_long = is_long
        self.filler = filler

    # The journal.

    def tell(self, kind: str, *words: object) -> None:
        self.journal.write("\t".join(map(str, (kind, self.action, *words))))

    def step(self) -> None:
        """Begin an action. Whatever it writes carries its number."""
        self.action = self.journal.begin(self.worker)

    def born(self, inode: int) -> int:
        identity = self.journal.next("identity")
        self.tell("BORN", identity, inode)
        return identity

    def gained(self, file: File, name: Name) -> None:
        file.names.append(name)
        self.tell("GAINED", file.identity, *name)

    def dropped(self, file: File, name: Name) -> None:
        file.names.remove(name)
        self.lost(file.identity, name)
        if not file.names and file.descriptor is None:
            self.files.remove(file)

    def lost(self, identity: int, name: Name) -> None:
        """Tell that the name is gone, and the last action that may still have seen it."""
        self.tell("DROPPED", identity, *name, self.journal.action)

    # Paths.

    def path(self, name: Name) -> Path:
        folder, last = name
        above = self.folders[folder]
        return (self.path(above) if above else Path()) / last

    def fresh(self, folder: int | None = None) -> Name:
        """Return a name that was never used."""
        long = "-so-that-the-directory-grows" * self.rng.choice((0, 0, 0, 1, 2))
        return (
            self.rng.choice(list(self.folders)) if folder is None else folder
        ), f"n{self.journal.next('name'):06d}{long}"

    def named(self) -> list[File]:
        return [file for file in self.files if file.names]

    def any(self) -> File:
        if not self.named():
            self.create()
            self.step()
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
        self.tell("SYNCED", file.identity, self.action, self.journal.action)

    def sometimes_synced(self, file: File, descriptor: int, share: float = 0.15) -> None:
        if self.rng.random() < share:
            self.synced(file, descriptor, self.rng.choice((os.fsync, os.fdatasync)))

    def made(self, name: Name, flags: int = os.O_CREAT | os.O_EXCL) -> tuple[File, int]:
        descriptor = os.open(self.path(name), os.O_RDWR | flags, 0o644)
        file = File(self.born(os.fstat(descriptor).st_ino))
        self.files.append(file)
        self.gained(file, name)
        return file, descriptor
