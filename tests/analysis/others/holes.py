"""Many files, of which every other is removed: `holes.py SEED`, beside exercise.py. The remaining
segments are worth collecting. One file is appended to, with an fsync each time."""

import sys

from exercise import Exercise

COUNT, BYTES = 160, 1 << 17
APPENDS, APPENDED = 100, 1024


def main() -> None:
    exercise = Exercise(sys.argv[1])
    files = [exercise.fresh() for _ in range(COUNT)]
    for path in files:
        exercise.put(path, 0, BYTES)
        exercise.named(path)
    exercise.sync()
    for path in files[::2]:
        exercise.lost(path)
        path.unlink()
    for number in range(APPENDS):
        exercise.put(files[1], BYTES + number * APPENDED, APPENDED, is_synced=True)
    exercise.sync()


if __name__ == "__main__":
    main()
