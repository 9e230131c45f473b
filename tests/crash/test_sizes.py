"""How much a recording holds, and how many of its states memory has room for."""

import random
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import DISCARD, FLUSH, READ, WRITE, Body, write

from fscost.crash import explore, sizes
from fscost.crash.fsynced import FSYNC
from fscost.crash.programs import About, Job, Say, Take, whole
from fscost.errors import HostError, InputError

MIB = 1 << 20
MOST_BYTES = 5 << 30
"""Memory for the blocks of the largest recording (docs/limits.md)."""
PLAN = """
from pathlib import Path
from fscost import capture
from fscost.crash import explore, sizes
def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith(name))
recording = Path({recording!r})
sizes.check(recording, "reorder-4k")
crash = capture.crash(recording)
before = memory("VmRSS")
[cut] = crash.cuts(0, 1 << 60, 1)
plan = explore.planned(crash, [cut], explore.Limits())
print(plan.states[0].pending, memory("VmHWM") - before)
"""


def unasked(about: About, jobs: Sequence[Job], say: Say, take: Take = whole, /) -> list[Any]:
    raise AssertionError("states were examined")


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    def make(*requests: tuple[int, int, int, int], content: bytes = b"x" * MIB) -> Path:
        """Write requests: what, on which disk, and a range."""
        bodies = []
        for at, (op, disk, offset, length) in enumerate(requests, 1):
            row = struct.pack("<QQQQIHBB", at, at, offset, length, 0, disk, op, 0)
            bodies.append((1, Body([row], content[:length] if op == WRITE else b"")))
        return write(tmp_path / "recording", bodies, size=1 << 40, disks=2)

    return make


def test_another_recording_of_the_name_has_a_size_of_its_own(made: Callable[..., Path]) -> None:
    """Trials of --minimise record to one place, one after the other."""
    found = [
        sizes.size(made(*[(WRITE, 0, at * 4096, 4096) for at in range(count)])).image_bytes
        for count in (1, 3)
    ]
    assert found == [4096, 3 * 4096]


def test_an_image_holds_each_place_once(made: Callable[..., Path]) -> None:
    chance = random.Random(1)
    writes = [
        (WRITE, chance.randrange(2), chance.randrange(99) * 512, chance.randrange(1, 40) * 512)
        for _ in range(40)
    ]
    others = [(READ, 0, 0, 512), (FLUSH, 1, 0, 0), (DISCARD, 0, 0, MIB)]
    found = sizes.size(made(*writes, *others))
    places = {
        (disk, sector)
        for _, disk, offset, length in writes
        for sector in range(offset // 512, (offset + length) // 512)
    }
    assert found.image_bytes == 512 * len(places)
    blocks = sum(
        len({sector // 8 for sector in range(offset // 512, (offset + length) // 512)})
        for _, _, offset, length in writes
    )
    assert found.units == {4096: blocks + 2, 512: sum(each[3] for each in writes) // 512 + 2}
    assert sizes.size(made(*others)).image_bytes == 0


def test_a_recording_of_too_many_blocks_is_refused(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = made((WRITE, 0, 0, MIB), (FLUSH, 0, 0, 0))
    promises = [(1, FSYNC, 12)]
    found = explore.Source(recording, "command", "ext4", "", [], promises, 0, 9, 0)
    monkeypatch.setattr("fscost.capture.crash", None)
    for most, device in ((256, "reorder-4k"), (2048, "reorder-512"), (1, "in-order")):
        monkeypatch.setattr(sizes, "MOST_UNITS", most)
        sizes._size.cache_clear()
        limits = explore.Limits(device=device)
        with pytest.raises(InputError, match="more than"):
            explore.explore(found, limits, unasked)
        with pytest.raises(InputError, match="more than"):
            explore.reference(found, [9], limits, unasked)
    monkeypatch.setattr(sizes, "MOST_UNITS", 257)
    sizes.check(recording, "reorder-4k")


def test_states_side_by_side_fit_into_half_of_the_memory(
    made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """48 programs took 48 images, whatever memory there was."""
    recording = made((WRITE, 0, 0, MIB), (WRITE, 1, 0, MIB))
    counts = {100 * MIB: 6, 23 * MIB: 5, 4 * MIB: 1, 2 * MIB: 1}
    for available, count in counts.items():
        monkeypatch.setattr("fscost.host.memory_bytes", lambda _, most=available: most)
        assert sizes.side_by_side(recording, 6) == count
    monkeypatch.setattr("fscost.host.memory_bytes", lambda _: MIB)
    with pytest.raises(HostError, match=r"a state takes 0\.0 GB of memory"):
        sizes.side_by_side(recording, 6)


def test_choosing_states_takes_memory_in_proportion_to_blocks(made: Callable[..., Path]) -> None:
    count = 128
    content = b"".join(struct.pack("<Q", number) * 64 for number in range(2048))
    recording = made(*((WRITE, 0, number * MIB, MIB) for number in range(count)), content=content)
    script = f"import sys; sys.path[:0] = {sys.path!r}; {PLAN.format(recording=str(recording))}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pending, grown = map(int, done.stdout.split())
    assert pending == count * 256
    assert grown < MOST_BYTES * pending // sizes.MOST_UNITS + 32 * MIB
