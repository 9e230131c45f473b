"""Output of the file systems' own tools about the blocks of an image."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = frozenset({"file_data", "directory", "directory_index", "symlink"})


@dataclass(frozen=True)
class Block:
    """A block. `kinds` are the structures that it may be; `inode` is None if the tool does not name
    one."""

    at: int
    length: int
    kinds: frozenset[str]
    inode: int | None = None
    home: int | None = None
    """Home byte offset of a journal's copy."""


def run(*words: str | Path, said: str | None = None, folder: Path | None = None) -> str:
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C"}
    answer = subprocess.run(
        words,
        input=said,
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
    )
    return answer.stdout


def one(*kinds: str) -> frozenset[str]:
    return frozenset(kinds)


def f2fs(image: Path, folder: Path) -> Iterator[Block]:
    """Parse dump.f2fs: the NAT has each node's place, the SIT the valid blocks of each segment, the
    SSA the node that points to each block."""
    size = 4096
    said = run(
        "dump.f2fs", "-d", "1", "-n", "0~-1", "-s", "0~-1", "-a", "0~-1", image, folder=folder
    )
    areas = {
        name: int(block)
        for name, block in re.findall(
            r"^(\w+)_blkaddr\s+\[0x\s*[0-9a-f]+ : (\d+)\]", said, re.MULTILINE
        )
    }
    for name, structure, end in (
        ("cp", "checkpoint", "sit"),
        ("sit", "sit", "nat"),
        ("nat", "nat", "ssa"),
        ("ssa", "segment_summary", "main"),
    ):
        yield from (
            Block(block * size, size, one(structure)) for block in range(areas[name], areas[end])
        )
    table = re.findall(
        r"^nid:\s*(\d+)\tino:\s*(\d+)\toffset:\s*\d+\tblkaddr:\s*(\d+)",
        (folder / "dump_nat").read_text(),
        re.MULTILINE,
    )
    inodes = {int(node): int(inode) for node, inode, _ in table}
    summaries = re.split(
        r"^segno: ([0-9a-f]+), .*$", (folder / "dump_ssa").read_text(), flags=re.MULTILINE
    )
    nodes = {
        int(segment, 16): re.findall(r"\[\s*\d+:\s*([0-9a-f]+)\]", body)
        for segment, body in zip(summaries[1::2], summaries[2::2], strict=True)
    }
    segments = re.split(
        r"^segno:\s*(\d+)\tvblocks:\s*\d+\tseg_type:(\d)\t.*$",
        (folder / "dump_sit").read_text(),
        flags=re.MULTILINE,
    )
    for number, type_, body in zip(segments[1::3], segments[2::3], segments[3::3], strict=True):
        bits = "".join(f"{int(byte, 16):08b}" for byte in re.findall(r"\b[0-9a-f]{2}\b", body)[:64])
        for place, bit in enumerate(bits):
            if bit == "1":
                inode = inodes.get(
                    int(nodes[int(number)][place], 16)
                )  # the SSA entry of the log for blocks collected by age is not on the disk yet
                yield Block(
                    (areas["main"] + int(number) * 512 + place) * size,
                    size,
                    FILE if int(type_) <= 2 else one("node"),
                    inode,
                )


def nilfs2(said: str) -> Iterator[Block]:
    """Parse the guest's dumpseg output: the files of each partial segment. nilfs2's own files have
    numbers below 11, except for the root."""
    own = {
        3: one("dat"),
        4: one("checkpoint"),
        5: one("sufile"),
        6: one("inode_table"),
    }
    for partial in re.split(r"^  partial segment: blocknr = ", said, flags=re.MULTILINE)[1:]:
        for file in re.split(r"^    finfo$", partial, flags=re.MULTILINE)[1:]:
            found = re.search(r"ino = (\d+), cno = \d+, nblocks = (\d+), ndatblk = (\d+)", file)
            assert found, file
            inode, _, data = (int(number) for number in found.groups())
            places = [int(place) for place in re.findall(r"\bblocknr = (\d+)", file)]
            for number, place in enumerate(places):
                kinds = own.get(inode) or FILE
                if number >= data and inode not in (3, 4, 5):
                    kinds = one("extent_map")
                yield Block(place * 4096, 4096, kinds, inode if inode not in own else None)


def ntfs3(image: Path) -> Iterator[Block]:
    """Parse ntfscluster: the runs of each attribute of each record."""
    own = {
        (0, 0x80): one("mft"),
        (1, 0x80): one("mft"),
        (0, 0xB0): one("inode_bitmap"),
        (2, 0x80): one("log"),
        (6, 0x80): one("block_bitmap"),
        (4, 0x80): one("superblock"),
        (7, 0x80): one("superblock"),
        (9, 0x80): one("xattr"),
        (9, 0xA0): one("xattr"),
        (10, 0x80): one("superblock"),
    }
    kinds = {
        0x20: one("extent_map"),
        0x80: one("file_data"),
        0xA0: one("directory"),
        0xB0: one("directory"),
        0xC0: one("symlink"),
    }
    records = 1 + max(
        int(number)
        for number in re.findall(
            r"^Inode (\d+) ", run("ntfscluster", "-f", "-c", "0-99999999", image), re.MULTILINE
        )
    )
    for inode in (
        number for number in range(records) if number != 8
    ):  # $BadClus is as long as the disk and has no clusters
        attribute = 0
        for word, run_ in re.findall(
            r"^    (0x[0-9a-f]+) - |^ +\d+ +(\d+ +\d+)$",
            run("ntfscluster", "-f", "-v", "-I", str(inode), image),
            re.MULTILINE,
        ):
            if word:
                attribute = int(word, 16)
                continue
            first, count = (int(number) for number in run_.split())
            expected = own.get((inode, attribute)) or kinds.get(attribute, one("xattr"))
            yield from (
                Block(cluster * 4096, 4096, expected, inode if inode > 10 else None)
                for cluster in range(first, first + count)
            )


def jfs(image: Path, inodes: list[int]) -> Iterator[Block]:
    """Parse jfs_debugfs: the places of each inode and its attributes, the maps, the log."""
    said = run(
        "jfs_debugfs",
        image,
        said="".join(f"inode {inode}\nx\n" for inode in inodes)
        + "superblock\nx\niag 0\nx\ndmap\nx\nquit\n",
    )
    for part in re.split(r"\bInode (?=\d+ at block)", said)[1:]:
        [inode, block] = re.findall(r"^(\d+) at block (\d+), ", part)[0]
        yield Block(int(block) * 4096, 4096, one("inode_table"))
        length, address = (
            int(re.findall(rf"di_ea\.{name}:\s*(\d+)", part)[0]) for name in ("len", "address")
        )
        yield from (
            Block(at * 4096, 4096, one("xattr"), int(inode))
            for at in range(address, address + length)
        )
    for pattern, structure in (
        (r"IAG 0 at block (\d+)", "inode_bitmap"),
        (r"map control page at block (\d+)", "block_bitmap"),
    ):
        [block] = re.findall(pattern, said)
        yield Block(int(block) * 4096, 4096, one(structure))
    [length] = re.findall(r"s_logpxd\.len:\s*(\d+)", said)
    [address] = re.findall(r"s_logpxd\.address:\s*(\d+)", said)
    yield from (
        Block(at * 4096, 4096, one("log")) for at in range(int(address), int(address) + int(length))
    )


def reiserfs(image: Path) -> Iterator[Block]:
    """Parse debugreiserfs -d (tree nodes and the blocks that they point to) and -m (bitmaps)."""
    said = run("debugreiserfs", "-d", image)
    for block in re.findall(r"^(?:INTERNAL|LEAF) NODE \((\d+)\)", said, re.MULTILINE):
        yield Block(int(block) * 4096, 4096, one("fs_tree"))
    # The line of a deleted item ends in DELETED.
    for inode, pointers in re.findall(
        r"\|\d+ (\d+) 0x[0-9a-f]+ IND \(1\),[^\n]*\|\n\d+ pointers\n\[([^]]*)\]", said
    ):
        for first, count in re.findall(r"(\d+)(?:\((\d+)\))?", pointers):
            for block in range(int(first), int(first) + int(count or 1)) if int(first) else ():
                yield Block(block * 4096, 4096, one("file_data", "xattr"), int(inode))
    for block in re.findall(
        r"^#\d+: block (\d+):", run("debugreiserfs", "-m", image), re.MULTILINE
    ):
        yield Block(int(block) * 4096, 4096, one("block_bitmap"))


def reiserfs_journal(image: Path, journal: Path) -> Iterator[Block]:
    """Parse debugreiserfs -j: the transactions that the journal still has."""
    said = run("debugreiserfs", "-j", journal, image)
    for part in re.split(r"^Mountid ", said, flags=re.MULTILINE)[1:]:
        [descriptor, commit] = re.findall(r"desc (\d+), .*commit (\d+)", part)[0]
        yield Block(int(descriptor) * 4096, 4096, one("journal_descriptor"))
        yield Block(int(commit) * 4096, 4096, one("journal_commit"))
        for at, home in re.findall(r"(\d+)->(\d+)", part):
            yield Block(int(at) * 4096, 4096, one("journal_copy"), home=int(home) * 4096)


def exfat(image: Path) -> Iterator[Block]:
    """Parse dump.exfat: the FAT, the bitmap, the up-case table. A cluster that begins with a file's
    entries is a directory."""
    said = run("dump.exfat", image)
    numbers = {
        name: int(number, 0)
        for name, number in re.findall(
            r"^(\w[\w ]+?) ?(?:\([^)]*\))?:\s+(\w+)$", said, re.MULTILINE
        )
    }
    sector = 1 << numbers["Sector Size Bits"]
    cluster = sector << numbers["Sector per Cluster bits"]
    heap = numbers["Cluster Heap Offset"] * sector
    yield from regions(
        (0, 12 * sector, "superblock"), (12 * sector, 24 * sector, "superblock_backup")
    )
    table = numbers["FAT Offset"] * sector
    yield from regions((table, table + numbers["FAT Length"] * sector, "allocation_table"))
    for name, structure in (("Bitmap", "block_bitmap"), ("Upcase table", "superblock")):
        begin = heap + (numbers[f"{name} start cluster"] - 2) * cluster
        yield from regions((begin, begin + numbers[f"{name} size"], structure))
    yield from beginning(image, heap, rb"\x85[^\0].{30}\xc0")


def vfat(image: Path) -> Iterator[Block]:
    """Parse fsck.fat: the FATs. A cluster that begins with the entries `.` and `..` is a
    directory."""
    said = run("fsck.fat", "-v", "-n", image)
    patterns = (
        r"First FAT starts at byte (\d+)",
        r"(\d+) FATs",
        r"(\d+) bytes per FAT",
        r"Data area starts at byte (\d+)",
    )
    table, count, size, heap = (int(re.findall(pattern, said)[0]) for pattern in patterns)
    yield from (
        Block(at, 512, one("superblock", "superblock_backup")) for at in range(0, table, 512)
    )
    yield from regions(
        (table, table + count * size, "allocation_table"), (table + count * size, heap, "directory")
    )
    yield from beginning(image, heap, rb"\.          \x10.{20}\.\.         \x10")


def regions(*places: tuple[int, int, str]) -> Iterator[Block]:
    """Yield blocks of 512 bytes from one byte offset to another."""
    for begin, end, structure in places:
        yield from (Block(at, 512, one(structure)) for at in range(begin, end, 512))


def beginning(image: Path, start: int, pattern: bytes) -> Iterator[Block]:
    """Yield directories, recognized by their first bytes."""
    content = image.read_bytes()
    for found in re.finditer(pattern, content, re.DOTALL):
        if found.start() >= start and found.start() % 512 == 0:
            yield Block(found.start(), 512, one("directory"))


def kinds(said: str) -> Iterator[tuple[str, int, str]]:
    """Yield kind, inode and path from the output of extents.py."""
    for kind, inode, path in re.findall(r"^KIND\t(\w+)\t(\d+)\t(.+)$", said, re.MULTILINE):
        yield kind, int(inode), path


def extents(said: str) -> Iterator[tuple[Block, str]]:
    """Yield each extent with its path, from the output of extents.py in the guest."""
    for inode, at, length, path in re.findall(
        r"^EXTENT\t(\d+)\t(\d+)\t(\d+)\t(.+)$", said, re.MULTILINE
    ):
        yield Block(int(at), int(length), one("file_data"), int(inode)), path
