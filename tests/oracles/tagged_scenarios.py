"""Sequences of actions that used to hide owners and names.

The module needs the standard library only, so that it runs in guests.
"""

import fcntl
import os

from tagged_actions import FICLONE, PAGE, Actions, fallocate  # beside this file, in guests too
from tagged_tree import MIB, File, Name


class Scenarios(Actions):
    """Actions of single kinds of workload."""

    def write_below(self) -> None:
        """Rename a directory, then write new files below it at once."""
        folder = self.below_the_root()
        if self.rng.random() < 0.5:
            self.sync()
        self.folder_moved(folder, self.fresh())
        self.fill(folder)

    def swap_folders(self) -> None:
        """Give a directory the name that another one gives up, then write below both."""
        first, second = self.below_the_root(), self.below_the_root()
        given_up = self.folders[first]
        assert given_up
        self.folder_moved(first, self.fresh(0))
        if self.folders[first] != given_up and first != second:
            self.folder_moved(second, given_up)
        self.fill(first)
        self.fill(second)

    def remove_folder(self) -> None:
        """Remove a directory and the files in it; files of other directories may get the inode
        numbers and the blocks."""
        self.make_folder()
        folder = max(self.folders)
        self.fill(folder)
        if self.rng.random() < 0.5:
            self.sync()
        self.step()
        for file in [file for file in self.files if file.names and file.names[0][0] == folder]:
            self.removed(file, file.names[0])
        name = self.folders.pop(folder)
        assert name
        self.path(name).rmdir()
        self.lost(folder, name)
        for _ in range(self.rng.randrange(4)):
            self.step()
            self.create()

    def save(self) -> None:
        """Replace a file one or several times, as editors and databases do: by a temporary file,
        renamed over it. The temporary names are all different, or the same each time."""
        old = self.any()
        target = self.rng.choice(old.names)
        lock = (target[0], f"{target[1]}.lock") if self.rng.random() < 0.5 else None
        for _ in range(self.rng.randrange(1, 5)):
            self.step()
            file, descriptor = self.made(lock or self.fresh(target[0]))
            try:
                self.put(file, descriptor, 0, self.length() + self.rng.choice((0, 120 << 10)))
                self.sometimes_synced(file, descriptor, 0.7)
            finally:
                os.close(descriptor)
                self.moved(file, file.names[0], target, over=old)
            old = file
            if self.rng.random() < 0.3:
                self.sync()
            if self.rng.random() < 0.4:
                self.step()
                self.temporary()

    def shrink_and_clone(self) -> None:
        """Clone a file and change the clone where a fragmented file may have given up blocks, both
        of data and of its map."""
        file, descriptor = self.made(self.fresh())
        blocks = self.rng.choice((64, 300, 600))
        fallocate(descriptor, 0, 0, 2 * blocks * PAGE)
        for number in range(blocks):
            self.put(file, descriptor, 2 * number * PAGE, PAGE)
        self.synced(file, descriptor)
        self.step()
        os.ftruncate(descriptor, self.rng.choice((0, 1, blocks // 3)) * PAGE)
        os.close(descriptor)
        self.sync()
        self.step()
        source, old = self.made(self.fresh())
        self.put(source, old, 0, 16 * PAGE)
        clone, new = self.made(self.fresh())
        try:
            fcntl.ioctl(new, FICLONE, old)
            self.tell("CLONED", source.identity, clone.identity)
            self.step()
            self.put(clone, new, 0, self.rng.choice((16 * PAGE, MIB, 4 * MIB)))
            self.synced(clone, new)
        finally:
            os.close(old)
            os.close(new)

    def attributes(self) -> None:
        """Give a file or a directory more attributes than its inode holds, and remove some."""
        path = self.path(self.rng.choice(self.any().names))
        if self.rng.random() < 0.3:
            path = self.path(self.fresh()).parent
        keys = [f"user.{number}.of-many" for number in range(self.rng.choice((5, 40, 250)))]
        value = b"A VALUE. " * self.rng.choice((1, 20, 200))
        for key in keys:
            os.setxattr(path, key, value)
        if self.rng.random() < 0.5:
            self.sync()
        for key in self.rng.sample(keys, len(keys) // 2):
            os.removexattr(path, key)

    def below_the_root(self) -> int:
        """Return a directory that can be renamed."""
        if len(self.folders) == 1:
            self.make_folder()
            self.step()
        return self.rng.choice([folder for folder, name in self.folders.items() if name])

    def fill(self, folder: int) -> None:
        """Create a few files in a directory."""
        for _ in range(self.rng.randrange(1, 4)):
            self.step()
            file, descriptor = self.made(self.fresh(folder))
            self.put(file, descriptor, 0, self.length() + self.rng.choice((0, 100 << 10)))
            self.sometimes_synced(file, descriptor, 0.4)
            os.close(descriptor)

    def removed(self, file: File, name: Name) -> None:
        self.path(name).unlink()
        self.dropped(file, name)
