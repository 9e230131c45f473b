"""The parts of a guest's kernel (image, modules, initramfs), tested against cpio(1) and hand-made
ELF objects."""

import lzma
import struct
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from fscost.errors import InputError
from fscost.lab.vm import image, modules, vmlinux
from fscost.lab.vm.initramfs import Initramfs
from fscost.lab.vm.kernels import GuestKernel
from fscost.lab.vm.modules import Modules

KERNEL = b"\x7fELF" + b"Linux version 6.12.9-test (somebody) #1" + bytes(5000)


def bz_image(packed: bytes, setup_sectors: int = 27) -> bytes:
    """Return a bzImage: a real-mode part with the relevant fields of the setup header, then the
    compressed kernel as the build leaves it, with its length appended."""
    setup = bytearray((setup_sectors + 1) * 512)
    setup[0x1F1] = setup_sectors
    setup[0x202:0x206] = b"HdrS"
    content = bytes(700) + packed + struct.pack("<I", len(KERNEL))
    struct.pack_into("<II", setup, 0x248, 700, len(packed) + 4)
    return bytes(setup) + content + b"after"


def zstd(content: bytes) -> bytes:
    return pa.compress(content, "zstd", asbytes=True)


@pytest.mark.parametrize(
    "packed", [lzma.compress(KERNEL, check=lzma.CHECK_CRC32), zstd(KERNEL)], ids=["xz", "zstd"]
)
def test_the_kernel_comes_out_of_its_image(packed: bytes) -> None:
    assert vmlinux.unpack(bz_image(packed), "vmlinuz") == KERNEL
    assert vmlinux.version(KERNEL) == "6.12.9-test"


def test_a_vmlinux_stays_as_it_is() -> None:
    assert vmlinux.unpack(KERNEL, "vmlinux") == KERNEL


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (b"", "not a kernel for x86"),
        (bytes(4096), "not a kernel for x86"),
        (bz_image(b"\x02\x21\x4c\x18lz4"), "unsupported compression"),
        (bz_image(zstd(b"not ELF" * 100)), "not an ELF image"),
        (bz_image(zstd(KERNEL)[:40]), "damaged"),
        (bz_image(lzma.compress(KERNEL)[:60] + bytes(100)), "damaged"),
    ],
)
def test_what_is_no_kernel_is_said_to_be_none(image: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        vmlinux.unpack(image, "vmlinuz")


def test_a_kernel_that_unpacks_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vmlinux, "MAX_BYTES", len(KERNEL) - 1)
    for packed in (lzma.compress(KERNEL, check=lzma.CHECK_CRC32), zstd(KERNEL)):
        with pytest.raises(InputError, match="larger than"):
            vmlinux.unpack(bz_image(packed), "vmlinuz")


def module(**information: str | list[str]) -> bytes:
    """Return a 64-bit ELF object with a .modinfo section."""
    texts = b"".join(
        f"{key}={value}\0".encode()
        for key, values in information.items()
        for value in ([values] if isinstance(values, str) else values)
    )
    names = b"\0.modinfo\0.shstrtab\0"
    begin = 64
    table_at = begin + len(texts) + len(names)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table_at, 0, 64, 0, 0, 64, 3, 2
    )

    def section(name: int, at: int, length: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, length, 0, 0, 1, 0)

    table = (
        section(0, 0, 0)
        + section(1, begin, len(texts))
        + section(10, begin + len(texts), len(names))
    )
    return header + texts + names + table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernel = tmp_path / "kernel" / "fs"
    kernel.mkdir(parents=True)
    (kernel / "ext4.ko.xz").write_bytes(
        lzma.compress(module(depends="jbd2,mbcache", alias="fs-ext4"))
    )
    (kernel / "jbd2.ko.zst").write_bytes(zstd(module(depends="")))
    (kernel / "mbcache.ko").write_bytes(module(depends=""))
    (kernel / "crc32c-generic.ko").write_bytes(module(depends=""))
    (kernel / "btrfs.ko").write_bytes(
        module(depends="xor", softdep=["pre: crc32c-generic no-such post: jbd2"])
    )
    (kernel / "xor.ko").write_bytes(module(depends="btrfs"))
    (tmp_path / "modules.builtin").write_text("kernel/drivers/virtio/virtio-pci.ko\n")
    return tmp_path


def test_each_module_comes_after_what_it_needs(folder: Path) -> None:
    modules = Modules(folder)
    assert [each.name for each in modules.load_order(["ext4"])] == ["jbd2", "mbcache", "ext4"]
    assert modules.load_order(["ext4"])[0].content == module(depends="")


def test_soft_needs_come_first_and_circles_end(folder: Path) -> None:
    assert [each.name for each in Modules(folder).load_order(["btrfs", "xor", "btrfs"])] == [
        "crc32c_generic",
        "xor",
        "btrfs",
    ]


def test_what_is_built_in_is_there_without_a_file(folder: Path) -> None:
    modules = Modules(folder)
    assert modules.has("virtio_pci")
    assert modules.has("crc32c-generic")
    assert not modules.has("zfs")
    assert modules.load_order(["virtio_pci", "zfs"]) == []


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01" + bytes(30), module(depends="")[:-40]]
)
def test_a_damaged_module_is_named(folder: Path, content: bytes) -> None:
    (folder / "kernel" / "fs" / "mbcache.ko").write_bytes(content)
    with pytest.raises(InputError, match=r"mbcache\.ko"):
        Modules(folder).load_order(["mbcache"])


@pytest.mark.parametrize("name", ["ext4", "jbd2"])
def test_of_a_module_that_unpacks_to_too_much_there_is_a_part(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for where in (modules, vmlinux):
        monkeypatch.setattr(where, "MAX_BYTES", 100)
    with pytest.raises(InputError, match=rf"{name}\.ko.* is cut short"):
        Modules(folder).load_order([name])


def test_cpio_reads_the_initramfs(tmp_path: Path) -> None:
    archive = Initramfs()
    archive.folder("dev")
    archive.character_device("dev/console", 5, 1)
    archive.file("init", b"#!/bin/true\n" + bytes(range(256)), 0o755)
    archive.folder("modules")
    archive.file("modules/odd", b"x")
    content = archive.to_bytes()
    assert len(content) % 512 == 0
    listed = subprocess.run(
        ["cpio", "-tv", "--quiet"], input=content, capture_output=True, check=True
    ).stdout.decode()
    lines = [line.split() for line in listed.splitlines()]
    assert [(line[0], line[-1]) for line in lines] == [
        ("drwxr-xr-x", "dev"),
        ("crw-------", "dev/console"),
        ("-rwxr-xr-x", "init"),
        ("drwxr-xr-x", "modules"),
        ("-rw-r--r--", "modules/odd"),
    ]
    assert lines[1][4:6] == ["5,", "1"]
    subprocess.run(
        ["cpio", "-id", "--quiet", "init", "modules/odd"], input=content, cwd=tmp_path, check=True
    )
    assert (tmp_path / "init").read_bytes() == b"#!/bin/true\n" + bytes(range(256))


def test_levels_of_md_that_a_kernel_lacks(tmp_path: Path) -> None:
    (tmp_path / "kernel/drivers/md").mkdir(parents=True)
    (tmp_path / "kernel/drivers/md/raid1.ko.xz").touch()
    (tmp_path / "modules.builtin").write_text("kernel/drivers/md/raid0.ko\n")
    kernel = GuestKernel("9.9", tmp_path / "vmlinux", tmp_path)
    assert [level for level in (*image.RAID, "7") if image.assembles(kernel, level)] == ["0", "1"]
