"""Contents of a guest's initramfs: the agent as its first process, and the modules that it loads.
The rest of the userland is the host's."""

from pathlib import Path

from fscost.lab.vm.initramfs import Initramfs
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.modules import Modules
from fscost.profile.families import mkfs_programs

TRANSPORT = ("virtio_pci", "virtio_console")
"""Modules without which a guest cannot report that it has started."""
# Modules that provide aliases come first: libcrc32c depends on `crc32c` (see lab/vm/modules.py).
_PROVIDERS = (
    *(
        "crc32c_generic",
        "crc32_generic",
        "crc32c_cryptoapi",
        "crc32_cryptoapi",
    ),  # the last two since 6.16
    *("blake2b_generic", "xxhash_generic", "sha256_generic", "sha256"),
    *("lzo", "lz4", "zstd", "deflate"),
)
_DEVICES = ("virtio_blk", "9p", "9pnet_virtio", "overlay", "fuse", "loop")
_MODULES = {"ext2": "ext4", "ext3": "ext4"}
FILE_SYSTEMS = {type_: _MODULES.get(type_, type_) for type_ in mkfs_programs()}
"""Module that mounts each type of file system."""
_LANGUAGES = ("nls_cp437", "nls_ascii", "nls_utf8", "nls_iso8859-1")
RAID = {
    "linear": "linear",
    "0": "raid0",
    "1": "raid1",
    "4": "raid456",
    "5": "raid456",
    "6": "raid456",
    "10": "raid10",
}
"""Module that runs each md level. Linux removed `linear` in 6.8 and restored it in 6.14."""


def wanted(kernel: GuestKernel) -> tuple[str, ...]:
    """List every module that any cell may need, in a valid load order. A snapshot has them all,
    because loading them takes seconds under emulation."""
    modules = Modules(kernel.modules)
    every = (
        *TRANSPORT,
        *_PROVIDERS,
        *_DEVICES,
        *_LANGUAGES,
        *dict.fromkeys(FILE_SYSTEMS.values()),
        "md_mod",
        *dict.fromkeys(RAID.values()),
    )
    return tuple(name for name in every if modules.has(name))


def mounts(kernel: GuestKernel, type_: str) -> bool:
    """True if a guest of this kernel mounts file systems of this type."""
    module = FILE_SYSTEMS.get(type_)
    return module is not None and Modules(kernel.modules).has(module)


def assembles(kernel: GuestKernel, level: str) -> bool:
    """True if a guest of this kernel runs md arrays of this level."""
    return level in RAID and Modules(kernel.modules).has(RAID[level])


def build(kernel: GuestKernel, agent: Path, modules: tuple[str, ...]) -> bytes:
    """Build the archive; `agent` must be linked statically."""
    archive = Initramfs()
    for folder in ("dev", "proc", "sys", "modules"):
        archive.folder(folder)
    archive.character_device("dev/console", 5, 1)
    archive.file("init", agent.read_bytes(), 0o755)
    order = Modules(kernel.modules).load_order(modules)
    for module in order:
        archive.file(f"modules/{module.name}.ko", module.content)
    archive.file("modules/order", "".join(f"{module.name}\n" for module in order).encode())
    return archive.to_bytes()
