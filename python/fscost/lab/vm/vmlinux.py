"""The kernel proper out of a distribution's bzImage: booted as it is, emulation saves the seconds
that unpacking takes.

The place of the packed kernel is in the setup header (Documentation/arch/x86/boot.rst); its first
bytes tell how it is packed.
"""

import io
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
"""A kernel is 60 MB; a packed file may claim to be anything."""


def unpack(image: bytes, name: str) -> bytes:
    """The ELF image of the bzImage `image`; an ELF image is given back as it is. `name` is for
    errors."""
    if image.startswith(_ELF):
        return image
    if image[_HEADER_MAGIC_AT : _HEADER_MAGIC_AT + 4] != b"HdrS" or len(image) < _PAYLOAD_AT + 8:
        raise InputError(
            f"{name} is no kernel for x86 (neither an ELF image nor a bzImage)",
            "name a vmlinuz or a vmlinux",
        )
    begin = (image[_SETUP_SECTORS_AT] + 1) * _SECTOR_BYTES
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_AT)
    packed = image[begin + offset : begin + offset + length]
    kernel = _decompress(packed, name)
    if not kernel.startswith(_ELF):
        raise InputError(
            f"{name}: what is packed in it is no ELF image", "name an uncompressed vmlinux"
        )
    return kernel


def _decompress(packed: bytes, name: str) -> bytes:
    try:
        if packed.startswith(b"\xfd7zXZ\x00"):
            # The last four bytes are the length, which xz takes for garbage.
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
        f"{name} is packed in a way that is not known here (xz and zstd are)",
        "name an uncompressed vmlinux",
    )


def decompress_zstd(packed: bytes) -> bytes:
    """At most MAX_BYTES and one."""
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
    """`6.12.117+deb12-amd64`: the first word after `Linux version` in the kernel's own banner."""
    at = kernel.find(b"Linux version ")
    if at < 0:
        return None
    words = io.BytesIO(kernel[at : at + 200]).read().split()
    return words[2].decode("ascii", "replace") if len(words) > 2 else None
