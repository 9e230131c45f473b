"""How much a recording holds: its states are examined in memory, and a recording of a stranger may
claim any size."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fscost import capture, host
from fscost.errors import HostError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ranges = tuple[NDArray[np.int64], NDArray[np.int64]]
    """Offsets of ranges, and their ends."""

MOST_UNITS = 1 << 21
"""Blocks that the power may lose, of all writes: 8 GiB in blocks of 4 KiB."""
_KEPT_OF_MEMORY = 2
"""Divides the memory that is available: the rest is for what mounts and checks need."""


_READ = 8
"""Recordings whose sizes are remembered."""
_UNIT_BYTES = {"reorder-512": 512}
"""Devices whose blocks are smaller than `_BLOCK_BYTES`."""
_BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Size:
    """Size of a recording. `units`: the number of blocks of each size that its requests change; a
    flush or discard counts as one. `image_bytes`: how much the disks hold at most, together."""

    units: dict[int, int]
    image_bytes: int


def size(recording: Path) -> Size:
    """Read the size of a recording. InputError if its requests are too many for any device."""
    # Another recording may have taken its place.
    found = recording.stat()
    return _size(recording, (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(_READ)
def _size(recording: Path, _version: tuple[int, int, int]) -> Size:
    import numpy as np
    import pyarrow.compute as pc

    parts: dict[str, list[Ranges]] = {}
    others = count = 0
    for batch in capture.requests(recording):
        ops = batch["op"].cast("string")
        writes = batch.filter(pc.equal(ops, "write"))
        reads = pc.sum(pc.equal(ops, "read")).as_py() or 0
        count += batch.num_rows - reads
        others += batch.num_rows - reads - writes.num_rows
        if count > MOST_UNITS:
            raise _too_many(recording)
        names = np.asarray(writes["disk"].cast("string").to_pylist(), dtype=object)
        offsets, lengths = (writes[name].to_numpy().astype(int) for name in ("offset", "length"))
        for name in set(names):
            own = names == name
            parts.setdefault(name, []).append((offsets[own], offsets[own] + lengths[own]))
    disks = [
        (np.concatenate([one for one, _ in own]), np.concatenate([two for _, two in own]))
        for own in parts.values()
    ]
    units = {
        each: others + sum(int(((end - 1) // each - at // each + 1).sum()) for at, end in disks)
        for each in (_BLOCK_BYTES, *_UNIT_BYTES.values())
    }
    return Size(units, sum(map(_covered, disks)))


def _covered(ranges: "Ranges") -> int:
    """Return how many bytes lie in any of these ranges."""
    import numpy as np

    order = np.argsort(ranges[0], kind="stable")
    offsets, ends = (each[order] for each in ranges)
    before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])
    return int(np.maximum(0, ends - np.maximum(offsets, before)).sum())


def check(recording: Path, device: str) -> None:
    """Raise InputError if states of a recording could take too much memory to choose."""
    if size(recording).units[_UNIT_BYTES.get(device, _BLOCK_BYTES)] > MOST_UNITS:
        raise _too_many(recording)


def _too_many(recording: Path) -> InputError:
    return InputError(
        f"{recording}: its requests change more than {MOST_UNITS:,} blocks in all",
        "measure a smaller workload",
    )


def side_by_side(recording: Path, most: int) -> int:
    """Return how many states of a recording memory has room for at a time, at most `most`.
    HostError if there is none for one."""
    image_bytes = max(1, size(recording).image_bytes)
    available = host.memory_bytes("MemAvailable")
    if image_bytes > available:
        raise HostError(
            f"a state takes {image_bytes / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are"
            " available",
            "end other programs, or measure a smaller workload",
        )
    return max(1, min(most, available // _KEPT_OF_MEMORY // image_bytes))
