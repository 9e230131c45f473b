"""Extraction of the kernel from a distribution's bzImage. Booting it uncompressed saves the seconds
that unpacking takes under emulation.

The setup header holds the position of the compressed kernel (Documentation/arch/x86/boot.rst); its
first bytes identify the compression.
"""

import lzma
import struct

import pyarrow as pa

from fscost.errors import InputError

_HEADER_MAGIC_AT = 0x202
_SETUP_SECTORS_AT = 0x1F1
_PAYLOAD_AT = 0x248  # payload_offset and payload_length, since protocol 2.08
_SECTOR_BYTES = 512
_ELF = b"\x7fELF"
MAX_BYTES = 512 << 20
"""Limit of an unpacked kernel. A kernel takes 60 MB, but a compressed file may expand to any
size."""


def unpack(image: bytes, name: str) -> bytes:
    """Return the ELF image in the bzImage `image`; an ELF image is returned unchanged. `name` is
    for errors."""
    if image.startswith(_ELF):
        return image
    if image[_HEADER_MAGIC_AT : _HEADER_MAGIC_AT + 4] != b"HdrS" or len(image) < _PAYLOAD_AT + 8:
        raise InputError(
            f"{name} is not a kernel for x86 (neither an ELF image nor a bzImage)",
            "name a vmlinuz or a vmlinux",
        )
    begin = (image[_SETUP_SECTORS_AT] + 1) * _SECTOR_BYTES
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_AT)
    packed = image[begin + offset : begin + offset + length]
    kernel = _decompress(packed, name)
    if not kernel.startswith(_ELF):
        raise InputError(f"{name}: its content is not an ELF image", "name an uncompressed vmlinux")
    return kernel


def _decompress(packed: bytes, name: str) -> bytes:
    try:
        if packed.startswith(b"\xfd7zXZ\x00"):
            # The last four bytes are the length, which xz would treat as garbage.
            return _bounded(
                lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(packed, MAX_BYTES + 1), name
            )
        if packed.startswith(b"\x28\xb5\x2f\xfd"):
            return _bounded(decompress_zstd(packed[:-4]), name)
    except (lzma.LZMAError, OSError) as error:
        raise InputError(
            f"{name}: the kernel packed in it is damaged: {error}", "fetch it again"
        ) from None
    raise InputError(
        f"{name} uses an unsupported compression (xz and zstd are supported)",
        "name an uncompressed vmlinux",
    )


def decompress_zstd(packed: bytes) -> bytes:
    """Decompress at most MAX_BYTES + 1 bytes."""
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        return bytes(stream.read(MAX_BYTES + 1))


def _bounded(kernel: bytes, name: str) -> bytes:
    if len(kernel) > MAX_BYTES:
        raise InputError(
            f"{name}: the kernel packed in it is larger than {MAX_BYTES >> 20} MiB",
            "name an uncompressed vmlinux",
        )
    return kernel


def version(kernel: bytes) -> str | None:
    """Return the kernel version from its banner: the first word after `Linux version`, such as
    `6.12.117+deb12-amd64`."""
    at = kernel.find(b"Linux version ")
    if at < 0:
        return None
    words = kernel[at : at + 200].split()
    return words[2].decode("ascii", "replace") if len(words) > 2 else None
