"""Random actions on the tree, which tagged_work.py draws.

The module needs the standard library only, so that it runs in guests.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from tagged_tree import MIB, SECTOR, File, Name, Tree  # beside this file, in guests too

PAGE = 4096
SPREAD_FILES, SPREAD_APPENDS = 160, 100
UNSUPPORTED = {
    errno.EOPNOTSUPP,
    errno.EINVAL,
    errno.ENOTTY,
    errno.EPERM,
    errno.ENOSPC,
    errno.E2BIG,
    errno.ENODATA,
    errno.EXDEV,
    errno.ENOSYS,
    errno.EFBIG,
}
EXCHANGE = 2  # linux/fs.h RENAME_EXCHANGE
KEEP_SIZE, PUNCH, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32  # linux/falloc.h
FICLONE = 0x40049409
AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def fallocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    checked(libc.fallocate(descriptor, mode, ctypes.c_int64(offset), ctypes.c_int64(length)))


@contextlib.contextmanager
def folder_opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Actions(Tree):
    """Actions of all kinds of workload."""

    def create(self) -> None:
        file, descriptor = self.made(self.fresh())
        self.put(file, descriptor, self.rng.choice((0, 0, 0, self.place(MIB))), self.length())
        self.sometimes_synced(file, descriptor)
        os.close(descriptor)

    def change(self) -> None:
        file = self.rng.choice(self.files or [self.any()])
        with self.opened(file) as descriptor:
            self.put(file, descriptor, self.place(os.fstat(descriptor).st_size), self.length())
            self.sometimes_synced(file, descriptor)

    def append(self) -> None:
        file = self.any()
        with self.opened(file) as descriptor:
            end = -(-os.fstat(descriptor).st_size // SECTOR) * SECTOR
            self.put(file, descriptor, end, self.length())
            self.sometimes_synced(file, descriptor)

    def truncate(self) -> None:
        file = self.any()
        with self.opened(file) as descriptor:
            os.ftruncate(descriptor, self.place(os.fstat(descriptor).st_size))
            self.sometimes_synced(file, descriptor)

    def renew(self) -> None:
        """Truncate and rewrite a file, like a shell's `>`."""
        file = self.any()
        with self.opened(file, os.O_TRUNC) as descriptor:
            self.put(file, descriptor, 0, self.length())

    def remove(self) -> None:
        file = self.any()
        name = self.rng.choice(file.names)
        self.path(name).unlink()
        self.dropped(file, name)

    def orphan(self) -> None:
        """Remove a file while it is open, then write to it."""
        file = self.any()
        if file.descriptor is None:
            file.descriptor = os.open(self.path(file.names[0]), os.O_RDWR)
        for name in list(file.names):
            self.path(name).unlink()
            self.dropped(file, name)
        self.put(file, file.descriptor, 0, self.length())
        self.sometimes_synced(file, file.descriptor, 0.5)

    def close(self) -> None:
        held = [file for file in self.files if file.descriptor is not None]
        for file in held[: len(held) // 2 + 1]:
            self.closed(file)

    def closed(self, file: File) -> None:
        assert file.descriptor is not None
        os.close(file.descriptor)
        file.descriptor = None
        if not file.names:
            self.files.remove(file)

    def temporary(self) -> None:
        """Create and unlink a file like mkstemp and unlink: its name may never reach the disk."""
        file, descriptor = self.made(self.fresh())
        file.descriptor = descriptor
        if self.rng.random() < 0.3:
            self.put(file, descriptor, 0, self.length())
        self.path(file.names[0]).unlink()
        self.dropped(file, file.names[0])
        self.put(file, descriptor, 0, self.length() + self.rng.choice((0, 200 << 10)))
        self.sometimes_synced(file, descriptor, 0.5)
        if self.rng.random() < 0.7:
            self.closed(file)

    def nameless(self) -> None:
        """Create a file with O_TMPFILE; half of these files are given a name."""
        folder = self.rng.choice(list(self.folders))
        above = self.folders[folder]
        descriptor = os.open(self.path(above) if above else ".", os.O_RDWR | os.O_TMPFILE, 0o644)
        file = File(self.born(os.fstat(descriptor).st_ino), descriptor=descriptor)
        self.files.append(file)
        self.put(file, descriptor, 0, self.length())
        self.sometimes_synced(file, descriptor, 0.5)
        if self.rng.random() < 0.5:
            self.step()
            name = self.fresh(folder)
            here = os.fsencode(f"/proc/self/fd/{descriptor}")
            checked(
                libc.linkat(
                    AT_FDCWD, here, AT_FDCWD, os.fsencode(self.path(name)), AT_SYMLINK_FOLLOW
                )
            )
            self.gained(file, name)
            self.sometimes_synced(file, descriptor, 0.5)
        if self.rng.random() < 0.7:
            self.closed(file)

    def churn(self) -> None:
        """Create and remove files, so that inode numbers and blocks are reused."""
        for _ in range(self.rng.randrange(2, 30)):
            self.step()
            file, descriptor = self.made(self.fresh(0))
            self.put(file, descriptor, 0, self.length())
            self.sometimes_synced(file, descriptor, 0.1)
            os.close(descriptor)
            if self.rng.random() < 0.2:
                self.sync()
            if self.rng.random() < 0.8:
                self.step()
                self.path(file.names[0]).unlink()
                self.dropped(file, file.names[0])

    def replace(self) -> None:
        """Rename a new file over an old one."""
        old = self.any()
        target = self.rng.choice(old.names)
        file, descriptor = self.made(self.fresh(target[0]))
        self.put(file, descriptor, 0, self.length())
        self.sometimes_synced(file, descriptor, 0.5)
        os.close(descriptor)
        self.moved(file, file.names[0], target, over=old)

    def moved(self, file: File, name: Name, target: Name, over: File | None = None) -> None:
        self.step()
        self.path(name).rename(self.path(target))
        if over is not None:
            self.dropped(over, target)
        self.gained(file, target)
        self.dropped(file, name)

    def rename(self) -> None:
        """Rename a file once or several times in a row; another file may take the name that it
        gave up."""
        file = self.any()
        name = self.rng.choice(file.names)
        given_up = name
        for _ in range(self.rng.choice((1, 1, 1, 4))):
            target = self.fresh()
            self.moved(file, name, target)
            name = target
        other = self.any()
        if other is not file and self.rng.random() < 0.4:
            self.moved(other, self.rng.choice(other.names), given_up)

    def exchange(self) -> None:
        first, second = self.any(), self.any()
        if first is second:
            return
        one, two = first.names[0], second.names[0]
        checked(
            libc.renameat2(
                AT_FDCWD,
                os.fsencode(self.path(one)),
                AT_FDCWD,
                os.fsencode(self.path(two)),
                EXCHANGE,
            )
        )
        for file, before, after in ((first, one, two), (second, two, one)):
            self.gained(file, after)
            self.dropped(file, before)

    def link(self) -> None:
        file, name = self.any(), self.fresh()
        os.link(self.path(file.names[0]), self.path(name))
        self.gained(file, name)

    def symlink(self) -> None:
        name = self.fresh()
        self.path(name).symlink_to("x" * self.rng.choice((20, 100, 500)))
        self.tell("GAINED", self.born(os.lstat(self.path(name)).st_ino), *name)

    def xattr(self) -> None:
        file = self.any()
        value = (f"VALUE OF {file.identity} ".encode() * 8000)[
            : self.rng.choice((10, 300, 3000, 9000, 60000))
        ]
        key = f"user.{self.rng.randrange(5)}"
        if self.rng.random() < 0.2:
            os.removexattr(self.path(file.names[0]), key)
        os.setxattr(self.path(file.names[0]), key, value)

    def make_folder(self) -> None:
        name = self.fresh()
        self.path(name).mkdir()
        identity = self.born(self.path(name).stat().st_ino)
        self.folders[identity] = name
        self.tell("GAINED", identity, *name)

    def rename_folder(self) -> None:
        self.folder_moved(self.rng.choice(list(self.folders)), self.fresh())

    def folder_moved(self, identity: int, target: Name) -> None:
        """Rename a directory, unless it is the root or would lie below itself."""
        name, at = self.folders[identity], target[0]
        while at != identity and (above := self.folders[at]):
            at = above[0]
        if name is None or at == identity:
            return
        self.step()
        self.path(name).rename(self.path(target))
        self.folders[identity] = target
        self.tell("GAINED", identity, *target)
        self.lost(identity, name)

    def fill_folder(self) -> None:
        """Create many names and remove most of them."""
        self.make_folder()
        folder = max(self.folders)
        made = []
        for number in range(20_000 if self.is_long and self.rng.random() < 0.2 else 300):
            file, descriptor = self.made(self.fresh(folder))
            if number % 50 == 0:
                self.put(file, descriptor, 0, self.length())
            os.close(descriptor)
            made.append(file)
        if self.rng.random() < 0.5:
            self.sync()
        self.step()
        for file in self.rng.sample(made, len(made) * 9 // 10):
            self.path(file.names[0]).unlink()
            self.dropped(file, file.names[0])

    def spread(self) -> None:
        """Create many files and remove every other one, so that garbage collection is worthwhile.
        This action is never drawn; it must be requested."""
        made = []
        for _ in range(SPREAD_FILES):
            file, descriptor = self.made(self.fresh())
            self.put(file, descriptor, 0, MIB // 8)
            os.close(descriptor)
            made.append(file)
        self.sync()
        self.step()
        for file in made[::2]:
            self.path(file.names[0]).unlink()
            self.dropped(file, file.names[0])
        with self.opened(made[1]) as descriptor:
            for number in range(SPREAD_APPENDS):
                self.step()
                self.put(made[1], descriptor, MIB // 8 + number * 2 * SECTOR, 2 * SECTOR)
                self.synced(made[1], descriptor)

    def vast(self) -> None:
        """Write data at offsets that only trees of addresses reach."""
        file, descriptor = self.made(self.fresh())
        for place in self.rng.sample((0, 5 * MIB, 7 * MIB, 13 * MIB, 900 * MIB, 5000 * MIB), 4):
            with contextlib.suppress(OSError):  # EFBIG
                self.put(file, descriptor, place, 16 * PAGE)
        self.sometimes_synced(file, descriptor)
        os.close(descriptor)

    def direct(self) -> None:
        """Write past the page cache, mostly several times in a row, before anything else may have
        been written."""
        file = self.any()
        with self.opened(file, os.O_DIRECT) as descriptor, mmap.mmap(-1, MIB) as buffer:
            start = self.place(os.fstat(descriptor).st_size) // PAGE * PAGE
            length = min(self.length() // PAGE + 1, 64) * PAGE
            for _ in range(self.rng.choice((1, 2, 3))):
                self.step()
                buffer[:length] = bytes(self.tagged(file, start, length))
                with memoryview(buffer) as view, view[:length] as part:
                    os.pwrite(descriptor, part, start)
            self.sometimes_synced(file, descriptor, 0.5)

    def store(self) -> None:
        """Write through a mapping of the file."""
        file = self.any()
        with self.opened(file) as descriptor:
            length = min(self.length() // PAGE + 1, 64) * PAGE
            start = self.place(os.fstat(descriptor).st_size) // PAGE * PAGE
            if os.fstat(descriptor).st_size < start + length:
                os.ftruncate(descriptor, start + length)
            with mmap.mmap(descriptor, length, offset=start) as mapped:
                mapped[:] = bytes(self.tagged(file, start, length))
                if self.rng.random() < 0.3:
                    mapped.flush()

    def range(self) -> None:
        """Make holes, or collapse, insert, zero or allocate ranges; then write something there, or
        nothing."""
        file = self.any()
        mode = self.rng.choice(
            (
                KEEP_SIZE,
                KEEP_SIZE | PUNCH,
                KEEP_SIZE | PUNCH,
                COLLAPSE,
                INSERT,
                ZERO,
                ZERO | KEEP_SIZE,
            )
        )
        with self.opened(file) as descriptor:
            size = os.fstat(descriptor).st_size
            unit = PAGE if mode in (COLLAPSE, INSERT) else SECTOR
            start, length = (
                self.rng.randrange(size // unit + 1) * unit,
                self.rng.randrange(1, 40) * unit,
            )
            try:
                fallocate(descriptor, mode, start, length)
                self.sometimes_synced(file, descriptor)
            finally:
                if self.rng.random() < 0.5:
                    self.step()
                    self.put(file, descriptor, start + PAGE, self.length())
                    self.sometimes_synced(file, descriptor)

    def clone(self) -> None:
        """Clone a file, so that two files share blocks; then change one of them."""
        source = self.any()
        with self.opened(source) as old:
            file, descriptor = self.made(self.fresh())
            try:
                fcntl.ioctl(descriptor, FICLONE, old)
                self.tell("CLONED", source.identity, file.identity)
                self.sometimes_synced(file, descriptor)
                self.step()
                self.put(file, descriptor, self.place(os.fstat(descriptor).st_size), self.length())
            finally:
                os.close(descriptor)

    def sync(self) -> None:
        """Sync this file system only: sync(2) would also write what other tests have changed."""
        self.step()
        done = self.journal.completed(self.worker)
        with folder_opened(Path()) as root:
            checked(libc.syncfs(root))
        self.tell("SYNCED", "*", done, self.journal.action)

    def fsync(self) -> None:
        file = self.rng.choice(self.files or [self.any()])
        with self.opened(file) as descriptor:
            self.synced(file, descriptor, self.rng.choice((os.fsync, os.fdatasync)))

    def fsync_folder(self) -> None:
        name = self.folders[self.rng.choice(list(self.folders))]
        with folder_opened(self.path(name) if name else Path()) as folder:
            os.fsync(folder)
