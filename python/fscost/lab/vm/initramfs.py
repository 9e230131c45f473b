"""Writer for an uncompressed initramfs: under emulation, unpacking costs more than compression
saves.

The format is `newc` (Documentation/driver-api/early-userspace/buffer-format.rst): a header of
hexadecimal numbers, the name, and the content, each padded to four bytes.
"""

import stat
from dataclasses import dataclass, field


@dataclass
class Initramfs:
    """Entries in the order in which they were added. A folder must come before its contents."""

    _entries: list[bytes] = field(default_factory=list)

    def folder(self, path: str) -> None:
        """Add a folder; `path` has no leading slash."""
        self._add(path, stat.S_IFDIR | 0o755, b"")

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Add a regular file."""
        self._add(path, stat.S_IFREG | mode, content)

    def character_device(self, path: str, major: int, minor: int) -> None:
        """Add a device node. The kernel's first process needs `dev/console` before devtmpfs is
        mounted. Writing the entry needs no root, because no node is created on the host."""
        self._add(path, stat.S_IFCHR | 0o600, b"", (major, minor))

    def to_bytes(self) -> bytes:
        """Return the archive. The same entries give the same bytes, which are part of a snapshot's
        key."""
        end = _entry("TRAILER!!!", 0, 0, b"", (0, 0))
        archive = b"".join((*self._entries, end))
        return archive + bytes(-len(archive) % 512)

    def _add(self, path: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        # Inode numbers only identify hard links, and there are none.
        self._entries.append(_entry(path, len(self._entries) + 1, mode, content, device))


def _entry(path: str, inode: int, mode: int, content: bytes, device: tuple[int, int]) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    numbers = (inode, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers)
    return _padded(header + name) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)
