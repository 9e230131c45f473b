"""Output of btrfs's own tools about an image."""

import re
import subprocess
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 4096
TREES = {
    "ROOT_TREE": (1, "root_tree"),
    "EXTENT_TREE": (2, "extent_tree"),
    "CHUNK_TREE": (3, "chunk_tree"),
    "DEV_TREE": (4, "device_tree"),
    "FS_TREE": (5, "fs_tree"),
    "CSUM_TREE": (7, "csum_tree"),
    "QUOTA_TREE": (8, "quota_tree"),
    "UUID_TREE": (9, "uuid_tree"),
    "FREE_SPACE_TREE": (10, "free_space_tree"),
    "BLOCK_GROUP_TREE": (11, "block_group_tree"),
    "TREE_LOG": (2**64 - 6, "log_tree"),
    "TREE_RELOC": (2**64 - 8, "relocation_tree"),
    "DATA_RELOC_TREE": (2**64 - 9, "relocation_tree"),
}


def tree_of(name: str) -> tuple[int, str]:
    """Return a tree's number, and the structure of its blocks."""
    return TREES.get(name) or (int(name), "fs_tree")


def inode_of(name: str) -> int:
    """Return an inode's number. The tools show some numbers as the names of trees that have
    them."""
    return int(name) if name.isdigit() else TREES.get(name, (0, ""))[0]


@dataclass(frozen=True)
class Block:
    generation: int
    tree: int
    structure: str


@dataclass
class Image:
    """One file system at an instant: its tree blocks and extents by logical address, and all
    names."""

    disks: list[Path]
    at_ns: int
    fsid: bytes = b""
    blocks: dict[int, Block] = field(default_factory=dict)
    extents: dict[int, tuple[int, set[tuple[int, int]]]] = field(default_factory=dict)
    """Length in bytes, and each tree and inode that points to the extent, by address."""
    names: dict[tuple[int, int], set[tuple[int, str]]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """Each parent directory and name, by tree and inode."""
    subvolumes: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    """The parent tree, directory and name of a subvolume, by its tree."""
    chunks: list[tuple[int, int, str, list[tuple[int, int]]]] = field(default_factory=list)
    generation: int = 0
    """Generation of the newest superblock."""
    logged: set[tuple[int, int]] = field(default_factory=set)
    """Trees and inodes in log trees."""
    devices: dict[int, int] = field(default_factory=dict)
    """Device ids, by the disk's index in `disks`."""

    def places(self, logical: int) -> list[tuple[int, int, int]] | None:
        """Return disk, offset and copy of each place of an address; None in striped chunks."""
        start, _, kind, stripes = next(c for c in self.chunks if c[0] <= logical < c[0] + c[1])
        if re.search("RAID0|RAID10|RAID5|RAID6", kind):
            return None
        return [
            (self.devices[devid], offset + logical - start, copy)
            for copy, (devid, offset) in enumerate(stripes)
        ]

    def paths(self, tree: int, inode: int) -> set[str]:
        """Return all names of an inode, from the root of the file system."""
        if inode == 256:
            if tree == 5:
                return {""}
            above = self.subvolumes.get(tree)
            return (
                {f"{path}/{above[2]}" for path in self.paths(above[0], above[1])}
                if above
                else set()
            )
        return {
            f"{path}/{name}"
            for parent, name in self.names[tree, inode]
            for path in self.paths(tree, parent)
        }


@dataclass(frozen=True)
class Superblock:
    devid: int
    generation: int
    fsid: bytes


def superblock(disk: Path) -> Superblock | None:
    """Return dump-super's answer; None if the disk is no member."""
    text = subprocess.run(
        ["btrfs", "inspect-internal", "dump-super", disk],
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    devid = re.search(r"dev_item.devid\s+(\d+)", text)
    generation = re.search(r"^generation\s+(\d+)", text, re.MULTILINE)
    if not devid or not generation:
        return None
    fsid = uuid.UUID(text.split("fsid", 1)[1].split()[0]).bytes
    return Superblock(int(devid[1]), int(generation[1]), fsid)


def read(disks: list[Path], at_ns: int) -> Image:
    """Read the file system with dump-super and dump-tree."""
    image = Image(disks, at_ns)
    supers = [superblock(disk) for disk in disks]
    for number, found in enumerate(supers):
        if found:
            image.devices[found.devid] = number
            image.generation = max(image.generation, found.generation)
            image.fsid = found.fsid
    # dump-tree reads the log of its first device. A mount takes the newest device; among equals,
    # the one with the lowest id (open_fs_devices, fs/btrfs/volumes.c).
    order = sorted(
        (-found.generation, found.devid, disk)
        for found, disk in zip(supers, disks, strict=True)
        if found
    )
    members = [disk for _, _, disk in order]
    words = [
        "btrfs",
        "inspect-internal",
        "dump-tree",
        *(["--noscan"] if len(members) > 1 else []),
        *members,
    ]
    dump = subprocess.run(words, check=True, capture_output=True)
    walk(image, dump.stdout.decode(errors="surrogateescape"))
    return image


def walk(image: Image, text: str) -> None:
    tree = shown = logged = at = 0
    key: tuple[str, str, str] = ("", "", "")
    for line in text.splitlines():
        if found := re.search(r"tree key \((\S+) ROOT_ITEM (\S+)\)", line):
            shown = tree_of(found[1])[0]
            logged = inode_of(found[2]) if line.startswith("log tree key") else 0
        elif found := re.match(r"(?:leaf|node) (\d+) .*generation (\d+) owner (\S+)$", line):
            at, generation = int(found[1]), int(found[2])
            tree, structure = tree_of(found[3])
            image.blocks[at] = Block(generation, tree, structure)
        elif found := re.match(r"(?:leaf|node) (\d+) flags \S+\(.*RELOC", line):
            image.blocks[at] = Block(image.blocks[at].generation, tree, "relocation_tree")
        elif found := re.match(r"\titem \d+ key \((\S+) (\S+) (\S+)\)", line):
            key = (found[1], found[2], found[3])
            if logged and key[1] == "INODE_ITEM":
                image.logged.add((logged, int(key[0])))
            if key[1] == "CHUNK_ITEM":
                image.chunks.append((int(key[2]), 0, "", []))
        elif found := re.match(r"\t\tlength (\d+) owner \d+ stripe_len \d+ type (\S+)", line):
            image.chunks[-1] = (image.chunks[-1][0], int(found[1]), found[2], [])
        elif found := re.match(r"\t\t\tstripe \d+ devid (\d+) offset (\d+)", line):
            image.chunks[-1][3].append((int(found[1]), int(found[2])))
        elif found := re.match(r"\t\t(?:extent|prealloc) data disk byte (\d+) nr (\d+)", line):
            if found[1] != "0":
                _, owners = image.extents.setdefault(int(found[1]), (int(found[2]), set()))
                if tree != TREES["TREE_LOG"][0]:
                    owners |= {(shown, inode_of(key[0])), (tree, inode_of(key[0]))}
        elif found := re.match(r"\t\tindex \d+ (?:parent (\d+) )?namelen \d+ name: (.*)", line):
            for number in {tree, shown}:
                image.names[number, inode_of(key[0])].add((inode_of(found[1] or key[2]), found[2]))
        elif (
            found := re.match(r"\t\troot backref key dirid (\d+) sequence \d+ name (.*)", line)
        ) and key[1] == "ROOT_BACKREF":
            image.subvolumes[int(key[0])] = (tree_of(key[2])[0], int(found[1]), found[2])
