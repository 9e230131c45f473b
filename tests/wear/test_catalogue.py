"""Devices of the catalogue: the same answer for disks of any size, and, where the maker rates a
device, the model's endurance beside the rating."""

from pathlib import Path
from random import Random

import pytest

from fscost import devices, wear

MIB = 1 << 20
UNIT = 4096
RATED = {
    each.name
    for each in devices.catalogue()
    if "wear" in each.sections and "rated_write_bytes" in each.sections["wear"].values
}
WORN = sorted(each.name for each in devices.catalogue() if "wear" in each.sections)
RANDOM = {
    "intel-dc-s3700-800gb": 0.15,
    "samsung-pm9d3a-7680gb": 0.15,
}
"""Drives for data centres: rated for random writes. Their cycles are derived from the rating, so
the model must give it back within this share."""
OLD = {"intel-x25-m-80gb"}
"""Rated at 20 GB a day, which is no endurance."""
LEAST, MOST = 0.95, 2.5
"""Range of computed ÷ rated endurance of the others, for writes in order and the least cycles. A
rating is for the maker's own mixture and for retention, so it may be smaller."""


def endurance(folder: Path, name: str, offsets: list[int], length: int) -> float:
    """Return the endurance for a trace of writes, computed ÷ rated."""
    lines = ["fio version 2 iolog", "d add", "d open"]
    lines += [f"d write {offset} {length}" for offset in offsets]
    path = folder / "t.iolog"
    path.write_text("\n".join(lines) + "\n")
    device = wear.find(name)
    [source] = wear.trace_sources(path, device, None)
    found = wear.measure(source, device)
    assert found.life.host_write_bytes is not None
    return found.life.host_write_bytes / float(device.values["rated_write_bytes"])


@pytest.mark.parametrize("name", sorted(RATED - set(RANDOM) - OLD))
def test_writes_in_order_endure_at_least_as_rated(tmp_path: Path, name: str) -> None:
    found = endurance(tmp_path, name, [at * MIB for at in range(512)], MIB)
    assert LEAST <= found <= MOST


@pytest.mark.parametrize("name", RANDOM)
def test_random_writes_of_a_data_centre_endure_as_rated(tmp_path: Path, name: str) -> None:
    random = Random(3)
    # Much more than a write buffer, and five device writes a pass: repeating a pass in the same
    # order changes little then.
    units = 256 * MIB // UNIT
    offsets = [random.randrange(units) * UNIT for _ in range(5 * units)]
    assert endurance(tmp_path, name, offsets, UNIT) == pytest.approx(1, rel=RANDOM[name])


@pytest.mark.parametrize("name", ["sd-card-32gb", "emmc-8gb"])
def test_a_footprint_keeps_whole_blocks(tmp_path: Path, name: str) -> None:
    """A write into each of 20 blocks had WA 1 instead of 1,024, because they became neighbours."""
    lines = [f"d write {at * 4 * MIB} 4096" for at in range(20)]
    path = tmp_path / "t.iolog"
    path.write_text("\n".join(["fio version 2 iolog", "d add", "d open", *lines]) + "\n")
    device = wear.find(name)
    [source] = wear.trace_sources(path, device, None)
    found = wear.measure(source, device, place=wear.Place.FOOTPRINT)
    assert (found.device_amplification or 0) > 500


@pytest.mark.parametrize("name", WORN)
def test_an_answer_does_not_depend_on_the_size_of_the_disk(tmp_path: Path, name: str) -> None:
    """Six interleaved streams, as a file system has them. Log, open and spare blocks that shrank
    with the disk made WA 257 instead of 1.02, and lives differ by 4."""
    lines = ["fio version 2 iolog", "d add", "d open"]
    lines += [
        f"d write {stream * 16 * MIB + at} 16384"
        for at in range(0, 16 * MIB, 16384)
        for stream in range(6)
    ]
    path = tmp_path / "t.iolog"
    path.write_text("\n".join(lines) + "\n")
    device = wear.find(name)
    found = []
    for size in (96, 256, 1024, 4096):
        [source] = wear.trace_sources(path, device, None, disk_bytes=size * MIB)
        found.append(wear.measure(source, device))
    amplifications = [each.device_amplification or 0 for each in found]
    runs = [each.life.runs or 0 for each in found]
    # A write buffer of 16 MiB, empty at first, is a sixth of a pass.
    assert max(amplifications) <= 1.05 * min(amplifications)
    assert max(runs) <= 1.1 * min(runs)
