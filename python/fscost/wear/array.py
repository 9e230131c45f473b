"""Arrays of Linux md, as `fscost wear --array` spells them:
`raid5,members=3,chunk=64K,layout=left-symmetric`."""

from dataclasses import dataclass, replace
from typing import Any

from fscost.errors import InputError, did_you_mean
from fscost.wear.device import Device, find

LEVELS = {"linear": -1, "raid0": 0, "raid1": 1, "raid4": 4, "raid5": 5, "raid6": 6, "raid10": 10}
"""Level numbers in superblocks (include/uapi/linux/raid/md_p.h)."""
_PARITY_LAYOUTS = {
    "left-asymmetric": 0,
    "right-asymmetric": 1,
    "left-symmetric": 2,
    "right-symmetric": 3,
    "parity-first": 4,
    "parity-last": 5,
}
_FIELDS = ("members", "chunk", "layout", "rmw_level", "cached_stripes", "batch_ms")
_LEAST_MEMBERS = {"raid4": 3, "raid5": 3, "raid6": 4}
_MOST_MEMBERS = 64
_CHUNK_BYTES = 512 << 10
"""Default chunk size of mdadm."""
_LARGEST_CHUNK_BYTES = 1 << 30
_EXAMPLE = "for example raid5,members=3,chunk=64K"


@dataclass(frozen=True)
class Shape:
    """An array of Linux md. `member_bytes` is 0 until the size of the represented disk is known.

    `rmw_level` and `cached_stripes` correspond to md's settings (`rmw_level`, `stripe_cache_size`).
    Writes within `batch_ms` of each other fill rows together.
    """

    level: str
    members: int
    chunk_bytes: int
    layout: int
    rmw_level: int = 1
    cached_stripes: int = 256
    batch_ms: float = 1.0
    member_bytes: int = 0

    @property
    def data_members(self) -> float:
        """Number of members whose capacity holds data, not redundancy."""
        if self.level == "raid10":
            return self.members / ((self.layout & 255) * (self.layout >> 8 & 255))
        return {
            "linear": self.members,
            "raid0": self.members,
            "raid1": 1,
            "raid6": self.members - 2,
        }.get(self.level, self.members - 1)

    @property
    def stripe_members(self) -> int:
        """Number of members over which a row of chunks of data goes (`raid10_set_io_opt`,
        drivers/md/raid10.c: far copies are in other rows)."""
        near = self.layout & 255
        if self.level != "raid10":
            return int(self.data_members)
        return self.members if self.members % near else self.members // near

    @property
    def has_parity(self) -> bool:
        """True if small writes require reads first."""
        return self.level in ("raid4", "raid5", "raid6")

    def for_disk(self, disk_bytes: int) -> "Shape":
        """Return the smallest such array that is as large as the disk."""
        chunk = self.chunk_bytes or 4096
        chunks = -(-disk_bytes // chunk)
        # RAID 10 rounds each member down to whole far copies.
        rows = -(-chunks // self.data_members) + 2 * self.members
        return replace(self, member_bytes=int(rows) * chunk)

    def native(self) -> dict[str, Any]:
        """Return the arguments for the native module."""
        return {
            "level": LEVELS[self.level],
            "layout": self.layout,
            "chunk_bytes": self.chunk_bytes,
            "member_bytes": [self.member_bytes] * self.members,
            "rmw_level": self.rmw_level,
            "cached_stripes": self.cached_stripes,
            "batch_gap_ns": int(self.batch_ms * 1e6),
        }


def parse(text: str) -> Shape:
    """Parse a shape; InputError names the field and the remedy."""
    level, *rest = text.split(",")
    if level not in LEVELS:
        raise InputError(
            f"--array: no level {level!r}",
            did_you_mean(level, LEVELS) or f"{_EXAMPLE}; levels: {', '.join(LEVELS)}",
        )
    given = dict(_field(each) for each in rest)
    if "members" not in given:
        raise InputError("--array: members is missing", _EXAMPLE)
    members = _number("members", given["members"], _LEAST_MEMBERS.get(level, 2), _MOST_MEMBERS)
    is_chunked = level not in ("linear", "raid1")
    if "chunk" in given and not is_chunked:
        raise InputError(f"--array: {level} has no chunks", "drop chunk")
    return Shape(
        level=level,
        members=members,
        chunk_bytes=_chunk_bytes(given.get("chunk")) if is_chunked else 0,
        layout=_layout(level, members, given.get("layout")),
        rmw_level=_number("rmw_level", given.get("rmw_level", "1"), 0, 2),
        cached_stripes=_number("cached_stripes", given.get("cached_stripes", "256"), 17, 32768),
        batch_ms=_number("batch_ms", given.get("batch_ms", "1"), 0, 60_000),
    )


def _field(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--array: {text!r} is not FIELD=VALUE", _EXAMPLE)
    if name not in _FIELDS:
        raise InputError(
            f"--array: no field {name!r}",
            did_you_mean(name, _FIELDS) or f"{_EXAMPLE}; fields: {', '.join(_FIELDS)}",
        )
    return name, value


def _number(name: str, text: str, least: int, most: int) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 9
    if not (is_number and least <= int(text) <= most):
        raise InputError(
            f"--array: {name} is {text!r}", f"give a whole number from {least} to {most}"
        )
    return int(text)


def _chunk_bytes(text: str | None) -> int:
    """Parse a chunk size; md's chunks are powers of two, in pages (mdadm(8), --chunk)."""
    if text is None:
        return _CHUNK_BYTES
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if number.isascii() and number.isdecimal() and len(number) <= 10 and unit in ("", "K", "M"):
        value = int(number) << {"": 0, "K": 10, "M": 20}[unit]
        if 4096 <= value <= _LARGEST_CHUNK_BYTES and value & (value - 1) == 0:
            return value
    raise InputError(
        f"--array: chunk is {text!r}", "give a power of two from 4K to 1024M, for example 64K"
    )


def _layout(level: str, members: int, text: str | None) -> int:
    if level in ("raid5", "raid6"):
        name = text or "left-symmetric"
        if name not in _PARITY_LAYOUTS:
            raise InputError(
                f"--array: layout is {name!r}",
                did_you_mean(name, _PARITY_LAYOUTS) or f"one of: {', '.join(_PARITY_LAYOUTS)}",
            )
        return _PARITY_LAYOUTS[name]
    if level == "raid10":
        name = text or "n2"
        kind, copies = name[:1], name[1:]
        is_number = copies.isascii() and copies.isdecimal()
        if kind not in ("n", "f", "o") or not is_number or not 2 <= int(copies[:3]) <= members:
            raise InputError(
                f"--array: layout is {name!r}",
                f"n, f or o (near, far, offset) and a number of copies up to {members}: n2",
            )
        number = int(copies)
        return {"n": 1 << 8 | number, "f": number << 8 | 1, "o": 1 << 16 | number << 8 | 1}[kind]
    if text is not None:
        raise InputError(f"--array: {level} has no layouts", "drop layout")
    # The zones of RAID 0 are of one size, so its two layouts are the same (drivers/md/raid0.c).
    return 2 if level == "raid0" else 0


def of_options(ssd: str | None, array: str | None) -> tuple[Device | None, Shape | None]:
    """Resolve the device of --ssd and the array of --array, or their equivalents in scripts."""
    if array is not None and ssd is None:
        raise InputError("--array needs a device for its members", "add --ssd DEVICE")
    return None if ssd is None else find(ssd), None if array is None else parse(array)
