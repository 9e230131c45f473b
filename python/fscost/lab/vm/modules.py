"""Modules of a kernel package that a guest needs, and their load order.

A package has no `modules.dep`, which depmod creates on installation. Each module lists its
dependencies in its section `.modinfo` (modinfo(8)): as `depends=`, and as `softdep=pre: …` for
modules that must be loaded although no symbol needs them. A dependency on an alias is not resolved
(libcrc32c depends on `crc32c`, which crc32c_generic provides): callers must list such providers
first.
"""

import lzma
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import InputError
from fscost.lab.vm.vmlinux import MAX_BYTES, decompress_zstd

_SUFFIXES = (".ko", ".ko.xz", ".ko.zst")


@dataclass(frozen=True)
class Module:
    """One unpacked module; `name` has underscores, as in the kernel."""

    name: str
    content: bytes
    depends: tuple[str, ...]
    soft_depends: tuple[str, ...]


class Modules:
    """Modules below a folder `lib/modules/VERSION`. Built-in modules need no file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths = {
            _name(path.name): path
            for path in sorted(folder.rglob("*.ko*"))
            if path.name.endswith(_SUFFIXES)
        }
        builtin = folder / "modules.builtin"
        lines = builtin.read_text().splitlines() if builtin.is_file() else []
        self._builtin = frozenset(_name(line.rsplit("/", 1)[-1]) for line in lines)

    def has(self, name: str) -> bool:
        """True if the kernel has the module, as a file or built in."""
        return _name(name) in self._paths or _name(name) in self._builtin

    def load_order(self, wanted: Iterable[str]) -> list[Module]:
        """Return `wanted` and all dependencies, each after its own dependencies. Modules without a
        file are left out; `has` tells whether the kernel lacks them."""
        order: dict[str, Module] = {}
        # Modules being visited, so that a package with a cycle terminates.
        under_way: set[str] = set()

        def visit(name: str) -> None:
            if name in order or name in under_way or name not in self._paths:
                return
            under_way.add(name)
            module = self._read(name)
            for needed in (*module.soft_depends, *module.depends):
                visit(needed)
            order[name] = module

        for name in wanted:
            visit(_name(name))
        return list(order.values())

    def _read(self, name: str) -> Module:
        path = self._paths[name]
        content = _unpacked(path)
        information = list(_modinfo(content, path))
        depends = tuple(
            _name(word)
            for key, value in information
            if key == "depends"
            for word in value.split(",")
            if word
        )
        return Module(name, content, depends, tuple(_soft_depends(information)))


def _soft_depends(information: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the soft dependencies before a module (`pre:`). Those after it (`post:`) load by
    themselves."""
    for key, value in information:
        if key != "softdep":
            continue
        before = False
        for word in value.split():
            if word.endswith(":"):
                before = word == "pre:"
            elif before:
                yield _name(word)


def _name(file_name: str) -> str:
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        file_name = file_name.removesuffix(suffix)
    return file_name.replace("-", "_")


def _unpacked(path: Path) -> bytes:
    packed = path.read_bytes()
    try:
        if path.name.endswith(".xz"):
            return lzma.LZMADecompressor().decompress(packed, MAX_BYTES)
        return decompress_zstd(packed) if path.name.endswith(".zst") else packed
    except (lzma.LZMAError, OSError) as error:
        raise InputError(f"{path} is damaged: {error}", "fetch the kernel again") from None


def _modinfo(content: bytes, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the `key=value` entries of the section. Modules are 64-bit little-endian ELF objects on
    every supported guest architecture."""
    section = sections(content, path).get(b".modinfo", b"")
    for text in section.split(b"\0"):
        key, equals, value = text.decode("utf-8", "replace").partition("=")
        if equals:
            yield key, value


def sections(content: bytes, path: Path) -> Mapping[bytes, bytes]:
    """Read the sections of an ELF object by name (elf(5))."""
    try:
        if content[:6] != b"\x7fELF\x02\x01":
            raise InputError(
                f"{path} is not a 64-bit little-endian ELF object", "fetch the kernel again"
            )
        table_at, entry_bytes, count, names_index = (
            struct.unpack_from("<Q", content, 0x28)[0],
            *struct.unpack_from("<HHH", content, 0x3A),
        )
        entries = [
            struct.unpack_from("<II16xQQ", content, table_at + number * entry_bytes)
            for number in range(count)
        ]
        _, _, names_at, names_bytes = entries[names_index]
    except (struct.error, IndexError):
        raise InputError(f"{path} is cut short", "fetch the kernel again") from None
    names = content[names_at : names_at + names_bytes]
    return {
        names[name_at:].split(b"\0", 1)[0]: content[at : at + length]
        for name_at, _, at, length in entries
    }
