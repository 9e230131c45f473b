"""The model of md's write path, compared with md itself: a guest traces the requests of the array
device, and its kernel counts the bytes of each member."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.variants import some
from tests.whole.conftest import Bench

from fscost import wear
from fscost._native import Array
from fscost.workload.model import Step

pytestmark = [pytest.mark.guest, pytest.mark.slow]

SECTOR_BYTES = 512
MEMBER_BYTES = 127 << 20
MD0 = 9 << 20
"""Device number of md0 as tracepoints filter it (major 9, minor 0; include/linux/kdev_t.h)."""
BATCH_S = 0.001
EXACT = {
    "-l 0 -n 3 -c 64": "raid0,members=3,chunk=64K",
    "-l 1 -n 2": "raid1,members=2",
    "-l 10 -n 4 -c 64": "raid10,members=4,chunk=64K",
    "-l 10 -n 3 -c 4 -p f2": "raid10,members=3,chunk=4K,layout=f2",
    "-l 10 -n 4 -c 64 -p o2": "raid10,members=4,chunk=64K,layout=o2",
}
PARITY = {
    "-l 4 -n 3 -c 64": "raid4,members=3,chunk=64K",
    "-l 5 -n 4 -c 16 -p right-asymmetric": "raid5,members=4,chunk=16K,layout=right-asymmetric",
    "-l 5 -n 3 -c 64": "raid5,members=3,chunk=64K",
    "-l 5 -n 5 -c 4": "raid5,members=5,chunk=4K",
    "-l 6 -n 5 -c 64": "raid6,members=5,chunk=64K",
}
# Without safe mode md writes no superblock between the two readings: the array has been dirty since
# the first write.
WATCH = f"""
trace=/sys/kernel/tracing; mount -t tracefs none $trace; echo 8192 > $trace/buffer_size_kb
[ ! -e /sys/block/md0/md/safe_mode_delay ] || echo 0 > /sys/block/md0/md/safe_mode_delay
echo hello > other; sync -f .
counters() {{ grep -E ' vd[a-p] ' /proc/diskstats; }}
direct() {{ dd if=/dev/zero of=f bs=$1 seek=$2 count=1 conv=notrunc oflag=direct status=none; }}
echo 'dev == {MD0}' > $trace/events/block/block_bio_queue/filter
begin() {{ counters; echo 1 > $trace/events/block/block_bio_queue/enable; }}
end() {{
  echo 0 > $trace/events/block/block_bio_queue/enable; counters
  grep block_bio_queue $trace/trace
}}
"""
SHELL = f"""{WATCH}
begin
dd if=/dev/zero of=f bs=64k count=96 conv=fsync status=none
for i in 7 3 50 21 9 33 60 2 44 11; do direct 16k $((i * 3)); done
for i in 1 2 3 4 5 6 7 8; do direct 4k $((i * 37)); done
for i in 5 80 200 7 300; do dd if=f of=/dev/null bs=16k skip=$i count=2 iflag=direct status=none; done
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do dd if=/dev/zero of=f bs=4k seek=$((i * 101)) count=1 conv=notrunc status=none; done
sync -f .
dd if=/dev/zero of=f bs=1M count=4 conv=notrunc oflag=direct status=none
end
"""
LINEAR = "linear,members=3"
LINEAR_KERNEL = "6.1"
"""Kernel for linear arrays: Debian's 6.12 has no module for this level."""
LINEAR_DISK_BYTES = 12 << 20
LINEAR_SHELL = f"""{WATCH}
cat /sys/block/md0/md/dev-*/size | sed 's/^/member KiB: /'
dd if=/dev/zero of=f bs=64k count=320 conv=fsync status=none
begin
for i in $(seq 0 7 319); do direct 64k $i; done
for i in $(seq 0 41 1270); do
  dd if=f of=/dev/null bs=16k skip=$i count=1 iflag=direct status=none
done
for i in $(seq 3 11 300); do
  dd if=/dev/zero of=f bs=64k seek=$i count=1 conv=notrunc status=none
done
sync -f .
dd if=/dev/zero of=f bs=1M count=20 conv=notrunc oflag=direct status=none
end
"""
COUNTERS = re.compile(r"^ *\d+ +\d+ vd([a-p]) (.*)$", re.MULTILINE)
QUEUED = re.compile(r" (\d+\.\d+): block_bio_queue: 9,0 (\w+) (\d+) \+ (\d+) ")


@dataclass
class Bytes:
    """Bytes that one member read and wrote."""

    read: int = 0
    write: int = 0


def counted(output: str, members: int) -> list[Bytes]:
    """Return the guest kernel's counts between the two readings
    (Documentation/admin-guide/iostats.rst: fields 3 and 7 are sectors)."""
    readings: dict[str, list[list[int]]] = {}
    for letter, numbers in COUNTERS.findall(output):
        readings.setdefault(letter, []).append([int(number) for number in numbers.split()])
    differences = [
        [after - before for before, after in zip(*readings[letter], strict=True)]
        for letter in sorted(readings)[:members]
    ]
    return [Bytes(each[2] * SECTOR_BYTES, each[6] * SECTOR_BYTES) for each in differences]


def queued(output: str) -> Iterator[tuple[float, str, int, int]]:
    """Yield the requests of the array device: time, flags, offset, length."""
    for at, flags, sector, sectors in QUEUED.findall(output):
        yield float(at), flags, int(sector) * SECTOR_BYTES, int(sectors) * SECTOR_BYTES


def modelled(output: str, spelled: str, member_bytes: int = MEMBER_BYTES) -> list[Bytes]:
    shape = wear.parse_array(spelled).for_disk(member_bytes)
    array = Array(shape.native() | {"member_bytes": [member_bytes] * shape.members})
    found = [Bytes() for _ in range(shape.members)]

    def take(requests: list[Any]) -> None:
        for member, kind, _, length, _ in requests:
            if kind in ("read", "preread"):
                found[member].read += length
            elif kind == "write":
                found[member].write += length

    last = 0.0
    for at, flags, offset, length in queued(output):
        if at - last > BATCH_S:
            take(array.settle())
        last = at
        if flags.startswith("F"):
            take(array.flush())
        if "D" not in flags and length:
            take(array.write(offset, length) if "W" in flags else array.read(offset, length))
    take(array.settle())
    return found


def ran(guests: Bench, flags: str, spelled: str) -> tuple[list[Bytes], list[Bytes]]:
    """Run a cell in a guest and return the bytes that the kernel counted and those that the model
    predicts."""
    result = guests.done(
        guests.cell(f"ext4 -b 4096 on md {flags}", Step("work", SHELL)), disk_size_bytes=128 << 20
    )
    assert result.output is not None
    output = result.output.read_text()
    assert len(list(queued(output))) > 30, output[-2000:]
    members = modelled(output, spelled)
    return counted(output, len(members)), members


@pytest.mark.parametrize(("flags", "spelled"), some(EXACT.items(), 1))
def test_without_parity_each_member_receives_what_the_model_says(
    guests: Bench, flags: str, spelled: str
) -> None:
    kernel, model = ran(guests, flags, spelled)
    assert [each.write for each in model] == [each.write for each in kernel]
    assert sum(each.write for each in kernel) >= 10 << 20
    # Which copy is read depends on what else is in flight; the sum does not.
    assert sum(each.read for each in model) == sum(each.read for each in kernel)


@pytest.mark.long
def test_each_member_of_a_linear_array_receives_what_the_model_says(guests: Bench) -> None:
    """The file lies on all three members, which the file system fills one after the other."""
    cell = guests.cell("ext4 -b 1024 on md -l linear -n 3", Step("work", LINEAR_SHELL))
    cell = replace(cell, profile=replace(cell.profile, kernel=LINEAR_KERNEL))
    result = guests.done(cell, disk_size_bytes=LINEAR_DISK_BYTES)
    assert result.output is not None
    output = result.output.read_text()
    [member_kib] = set(re.findall(r"^member KiB: (\d+)$", output, re.MULTILINE))
    model = modelled(output, LINEAR, int(member_kib) << 10)
    kernel = counted(output, len(model))
    assert model == kernel
    assert min(each.write for each in kernel) >= 4 << 20
    assert min(each.read for each in kernel) >= 64 << 10


@pytest.mark.parametrize(("flags", "spelled"), some(PARITY.items(), 1))
def test_with_parity_members_receive_nearly_what_the_model_says(
    guests: Bench, flags: str, spelled: str
) -> None:
    """No trace shows when md's queue is unplugged, so rows that fill up at that time differ."""
    kernel, model = ran(guests, flags, spelled)
    for each, expected in zip(kernel, model, strict=True):
        assert each.write == pytest.approx(expected.write, rel=0.01)
        assert each.read == pytest.approx(expected.read, rel=0.15)
