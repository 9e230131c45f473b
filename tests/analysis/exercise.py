"""Random work on a file system with any flags: `exercise.py SEED OPERATIONS [NUMBER]`, in its root;
its writes are numbered from NUMBER on.

Every 512 bytes of every file name its inode, the offset and the number of the write. Standard
output lists each name that any inode ever had with the directory's inode, and every file that was
truncated, changed or removed.
"""

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SECTOR = 512
LARGEST = 1 << 20
TAG = 64
"""Maximum length of a sector's tag."""


class Exercise:
    """A tree of files and directories that grows, changes and shrinks."""

    def __init__(self, seed: str, number: int = 0) -> None:
        self.rng = random.Random(seed)
        self.number = number
        self.folders = [Path()]
        self.files: list[Path] = []
        for folder, _, names in os.walk("."):
            self.files += [
                Path(folder, name) for name in names if not Path(folder, name).is_symlink()
            ]
            self.folders += [Path(folder)] if folder != "." else []
        self.files.sort()
        self.folders.sort()
        for path in self.folders[1:] + self.files:  # nilfs2's mkfs creates a file
            self.named(path)

    def named(self, path: Path) -> None:
        inside = (
            [
                Path(folder, name)
                for folder, folders, names in os.walk(path)
                for name in folders + names
            ]
            if path in self.folders
            else []
        )
        for found in (path, *inside):
            print(f"NAME\t{os.lstat(found).st_ino}\t{found.parent.stat().st_ino}\t/{found}")

    def lost(self, path: Path) -> None:
        print(f"LOST\t{os.lstat(path).st_ino}")

    def fresh(self) -> Path:
        self.number += 1
        long = "-so-that-the-directory-grows" * self.rng.randrange(4)
        return self.rng.choice(self.folders) / f"n{self.number}-{self.rng.randrange(1 << 30)}{long}"

    def write(self, path: Path) -> None:
        """Write some sectors of a file from a random one on; the last sector may be partial."""
        length = min(int(self.rng.paretovariate(0.6) * 500), LARGEST // 4)
        start = self.rng.choice((0, 0, self.rng.randrange(LARGEST // SECTOR) * SECTOR))
        self.put(path, start, length, is_synced=self.rng.random() < 0.1)

    def put(self, path: Path, start: int, length: int, *, is_synced: bool = False) -> None:
        self.number += 1
        if 0 < length % SECTOR < TAG:
            length += TAG  # no sector keeps the end of an older number
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        inode = os.fstat(descriptor).st_ino
        sectors = (
            f"TAG {inode} {at} {self.number} ".encode().ljust(SECTOR, b".")
            for at in range(start, start + length, SECTOR)
        )
        os.pwrite(descriptor, b"".join(sectors)[:length], start)
        if is_synced:
            os.fsync(descriptor)
        os.close(descriptor)

    def create(self) -> None:
        path = self.fresh()
        self.write(path)
        self.files.append(path)
        self.named(path)

    def change(self) -> None:
        path = self.rng.choice(self.files)
        self.lost(path)
        self.write(path)

    def make_folder(self) -> None:
        path = self.fresh()
        path.mkdir()
        self.folders.append(path)
        self.named(path)

    def fill_folder(self) -> None:
        for _ in range(self.rng.randrange(60)):
            path = self.rng.choice(self.folders[-3:]) / self.fresh().name
            path.touch()
            self.files.append(path)
            self.named(path)

    def rename(self) -> None:
        self.move(self.files, self.rng.choice(self.files))

    def rename_folder(self) -> None:
        if len(self.folders) < 3:
            return
        path = self.rng.choice(self.folders[1:])
        target = self.fresh()
        if path not in (target, *target.parents):
            path.rename(target)
            self.folders = [
                target / folder.relative_to(path) if folder.is_relative_to(path) else folder
                for folder in self.folders
            ]
            self.files = [
                target / file.relative_to(path) if file.is_relative_to(path) else file
                for file in self.files
            ]
            self.named(target)

    def move(self, among: list[Path], path: Path) -> None:
        target = self.fresh()
        path.rename(target)
        among[among.index(path)] = target
        self.named(target)

    def remove(self) -> None:
        path = self.files.pop(self.rng.randrange(len(self.files)))
        self.lost(path)
        path.unlink()

    def link(self) -> None:
        path = self.fresh()
        path.hardlink_to(self.rng.choice(self.files))
        self.files.append(path)
        self.named(path)

    def truncate(self) -> None:
        path = self.rng.choice(self.files)
        self.lost(path)
        os.truncate(path, self.rng.randrange(path.stat().st_size // SECTOR + 2) * SECTOR)

    def punch(self) -> None:
        path = self.rng.choice(self.files)
        self.lost(path)
        place = self.rng.randrange(path.stat().st_size // SECTOR + 1) * SECTOR
        command = [
            "fallocate",
            "--punch-hole",
            "--offset",
            str(place),
            "--length",
            str(SECTOR * self.rng.randrange(1, 100)),
            path,
        ]
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL)  # ext2 does not support it

    def xattr(self) -> None:
        """Set attributes. Some values belong to this inode alone; others may be shared between
        inodes, together with the blocks that hold them."""
        path = self.rng.choice(self.files)
        value = self.rng.choice(("x", f"OWNER {os.lstat(path).st_ino} ")) * 3000
        with suppress(OSError):  # too large for this file system
            os.setxattr(
                path,
                f"user.{self.rng.randrange(5)}",
                value[: self.rng.choice((10, 300, 900, 3000))].encode(),
            )

    def symlink(self) -> None:
        path = self.fresh()
        path.symlink_to("x" * self.rng.choice((20, 100, 500)))
        self.named(path)

    def read(self) -> None:
        self.rng.choice(self.files).read_bytes()

    def mode(self) -> None:
        self.rng.choice(self.files).chmod(self.rng.choice((0o600, 0o644, 0o755)))

    def sync(self) -> None:
        subprocess.run(["sync", "-f", "."], check=True)


def main() -> None:
    seed, operations, *number = sys.argv[1:]
    exercise = Exercise(seed, *map(int, number))
    often = {
        exercise.create: 30,
        exercise.change: 25,
        exercise.remove: 10,
        exercise.rename: 6,
        exercise.truncate: 4,
        exercise.make_folder: 4,
    }
    seldom = {
        exercise.link: 3,
        exercise.symlink: 3,
        exercise.xattr: 6,
        exercise.read: 5,
        exercise.mode: 4,
        exercise.fill_folder: 2,
    }
    rarely = {exercise.punch: 1, exercise.rename_folder: 1, exercise.sync: 1}
    weights = often | seldom | rarely
    for operation in exercise.rng.choices(list(weights), list(weights.values()), k=int(operations)):
        if exercise.files or operation in (exercise.create, exercise.make_folder, exercise.sync):
            with suppress(PermissionError):  # FAT has neither links nor modes
                operation()


if __name__ == "__main__":
    main()
