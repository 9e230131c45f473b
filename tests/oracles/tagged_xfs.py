"""Work on xfs that is requested rather than drawn: `tagged_xfs.py ACTION…`, run like tagged_work.py
and beside it."""

import fcntl
import os
import sys

from tagged_actions import FICLONE, PAGE, fallocate  # beside this file
from tagged_tree import Journal
from tagged_work import Work

FRAGMENTS = 600
ATTRIBUTES = 300


class XfsWork(Work):
    """Actions that depend on what xfs does with blocks and inodes."""

    def shrink(self) -> None:
        """Truncate a file whose extents need a tree, so that blocks of the tree are freed; then
        write to a clone of another file, which reuses the freed data blocks."""
        file, descriptor = self.made(self.fresh())
        fallocate(descriptor, 0, 0, 2 * PAGE * FRAGMENTS)
        for number in range(FRAGMENTS):
            self.put(file, descriptor, 2 * PAGE * number, PAGE)
        self.synced(file, descriptor)
        self.step()
        os.ftruncate(descriptor, 2 * PAGE * FRAGMENTS // 6)
        self.synced(file, descriptor)
        os.close(descriptor)
        source, old = self.made(self.fresh())
        self.put(source, old, 0, 16 * PAGE)
        self.synced(source, old)
        clone, new = self.made(self.fresh())
        fcntl.ioctl(new, FICLONE, old)
        self.tell("CLONED", source.identity, clone.identity)
        self.step()
        self.put(clone, new, 0, PAGE * FRAGMENTS)
        self.synced(clone, new)
        os.close(old)
        os.close(new)

    def attributes(self) -> None:
        """Give a new file enough attributes for a tree with interior nodes."""
        file, descriptor = self.made(self.fresh())
        for number in range(ATTRIBUTES):
            os.setxattr(descriptor, f"user.{number}", b"VALUE" * 100)
        self.synced(file, descriptor)
        os.close(descriptor)


if __name__ == "__main__":
    journal = Journal()
    work = XfsWork(journal, 0, is_long=False, filler="dots")
    work.run([f"{action}:1" for action in sys.argv[1:]])
    journal.write("END")
