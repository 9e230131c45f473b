"""Edge cases that exercise.py seldom reaches: `edges.py SEED`. One file is too long for its inode
to hold all addresses. Small files and attributes look like addresses of blocks that the disk has by
then."""

import os
import struct
import sys
from contextlib import suppress

from exercise import Exercise

MIB = 1 << 20
PLACES = (0, 5 * MIB, 7 * MIB, 13 * MIB)
"""Offsets whose addresses f2fs keeps in the inode, in both halves of a block of addresses, and in
one below an indirect block."""
PIECE = 1 << 16
NUMBERS = 800
"""Count of numbers that fits in the 3.4 KiB that f2fs keeps in an inode."""
FILES, STEP = 6, 4


def main() -> None:
    exercise = Exercise(sys.argv[1])
    path = exercise.fresh()
    for place in PLACES:
        exercise.put(path, place, PIECE)
    exercise.named(path)
    for first in range(0, FILES * NUMBERS * STEP, NUMBERS * STEP):
        path = exercise.fresh()
        numbers = range(4096 + first, 4096 + first + NUMBERS * STEP, STEP)
        path.write_bytes(struct.pack(f"<{NUMBERS}I", *numbers))
        with suppress(OSError):
            os.setxattr(path, "user.numbers", struct.pack("<40I", *numbers[:40]))
        exercise.named(path)


if __name__ == "__main__":
    main()
