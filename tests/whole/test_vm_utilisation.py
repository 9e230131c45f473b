"""Utilisation of an array's members, as `iostat -x` computes it from the kernel's io_ticks,
compared with the model's.

A guest plays one list of requests twice: on a recorded disk, from which the model predicts the load
of an array's members; and on md over null_blk devices, which take a fixed time for each request,
one after the other.
"""

import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.conftest import SEED
from tests.variants import some
from tests.whole.conftest import Bench

from fscost import capture, wear
from fscost.lab.vm import kernels
from fscost.lab.vm.modules import Modules
from fscost.profile.model import DiskSpec
from fscost.workload.model import Step

pytestmark = [pytest.mark.guest, pytest.mark.slow]

CHUNK_BYTES = 64 << 10
DISK_BYTES = 48 << 20
SERVICE_US = 20_000
"""Service time of each request of a member, far above the time that the emulated processor needs
between two."""
MEMBERS = 3
FINIT_MODULE = 313
"""System call number (arch/x86/entry/syscalls/syscall_64.tbl)."""
NULL_BLK = (
    f"nr_devices={MEMBERS} gb=1 memory_backed=1 queue_mode=2 submit_queues=1 hw_queue_depth=1"
    f" irqmode=2 completion_nsec={SERVICE_US * 1000}"
)
COUNTERS = re.compile(r"^ *\d+ +\d+ (md0|nullb\d) (.*)$", re.MULTILINE)
DELAYED = 0.25
"""Tolerance for read-first rows. md delays rows that must be read first until no other such row is
active (raid5_activate_delayed(), drivers/md/raid5.c): members idle between such batches, which no
trace shows."""
IO_TICKS, READS, WRITES = 9, 0, 4
"""Fields of /proc/diskstats after the name (Documentation/admin-guide/iostats.rst)."""


@dataclass(frozen=True)
class Work:
    """Requests of one size. `depth` of them are in flight: all for writes, one for reads."""

    kind: str
    request_bytes: int
    offsets: Sequence[int]

    @property
    def depth(self) -> int:
        return 256 if self.kind == "write" else 1

    def iolog(self) -> str:
        lines = [f"disk {self.kind} {offset} {self.request_bytes}" for offset in self.offsets]
        return "\n".join(["fio version 2 iolog", "disk add", "disk open", *lines, "disk close", ""])


def skewed(kind: str) -> Work:
    """Return requests of which two thirds go to chunks of member 1 and the others anywhere else."""
    rng = random.Random(SEED)
    size = 16 << 10
    chunks = range(DISK_BYTES // CHUNK_BYTES)
    of_one = [chunk for chunk in chunks if chunk % MEMBERS == 1]
    chosen = rng.sample(of_one, 80) + rng.sample([*set(chunks) - set(of_one)], 40)
    rng.shuffle(chosen)
    return Work(kind, size, [chunk * CHUNK_BYTES + rng.randrange(4) * size for chunk in chosen])


def blocks() -> Work:
    """Return writes of one 4 KiB block in each of 60 rows of chunks, no two next to each other."""
    rng = random.Random(SEED)
    row = CHUNK_BYTES * (MEMBERS - 1)
    offsets = [rng.randrange(0, row // 4096, 2) * 4096 for _ in range(60)]
    rows = rng.sample(range(DISK_BYTES // row), 60)
    return Work(
        "write", 4096, [at * row + within for at, within in zip(rows, offsets, strict=True)]
    )


def load_modules(folder: Path) -> str:
    """Return a shell line that loads the guest kernel's null_blk from files in this folder."""
    lines = []
    for module in Modules(kernels.fetch().modules).load_order(("null_blk",)):
        file = folder / f"{module.name}.ko"
        file.write_bytes(module.content)
        options = NULL_BLK if module.name == "null_blk" else ""
        lines.append(
            f"perl -e 'open(F, q(<), q({file})) or die; my $o = q({options});"
            f" syscall({FINIT_MODULE}, fileno(F), $o, 0) == 0 or $!{{EEXIST}} or die $!'"
        )
    return "\n".join(lines)


def setup(folder: Path, flags: str) -> str:
    members = " ".join(f"/dev/nullb{number}" for number in range(MEMBERS))
    return f"""set -e
{load_modules(folder)}
for each in {members}; do
  cd /sys/block/${{each#/dev/}}/queue
  echo mq-deadline > scheduler; echo 256 > nr_requests
done
mdadm --create /dev/md0 --run --quiet --assume-clean --raid-devices={MEMBERS} {flags} {members}
[ ! -e /sys/block/md0/md/safe_mode_delay ] || echo 0 > /sys/block/md0/md/safe_mode_delay
dd if=/dev/zero of=/dev/md0 bs=4k count=1 oflag=direct status=none
echo {{disk.array}} > {{dir}}/array"""


def script(work: Work, iolog: Path) -> str:
    engine = "libaio" if work.kind == "write" else "psync"
    return f"""
play() {{
  fio --name=play --thread --direct=1 --ioengine={engine} --iodepth={work.depth} \\
    --read_iolog={iolog} --replay_redirect=$1 > /dev/null
}}
counters() {{ grep -E ' (md0|nullb[0-9]) ' /proc/diskstats; }}
play $(cat array)
counters; play /dev/md0; counters"""


@dataclass(frozen=True)
class Member:
    requests: int
    busy_s: float
    utilisation: float


def counted(output: str) -> list[Member]:
    """Return the guest kernel's counts between the two readings. The reference time is the time the
    array has a request: the emulated processor's time for starting and ending fio is not part of
    the work."""
    readings: dict[str, list[list[int]]] = {}
    for name, fields in COUNTERS.findall(output):
        readings.setdefault(name, []).append([int(field) for field in fields.split()])
    array, *members = (
        [later - earlier for earlier, later in zip(*readings[name], strict=True)]
        for name in sorted(readings)
    )
    return [
        Member(
            member[READS] + member[WRITES],
            member[IO_TICKS] / 1e3,
            member[IO_TICKS] / array[IO_TICKS],
        )
        for member in members
    ]


def modelled(recording: Path, spelled: str, work: Work, folder: Path) -> list[Member]:
    file = folder / "member.toml"
    file.write_text(f"""
summary = "takes as long for each request"
kind = "test"
[wear]
capacity_bytes = {{ value = {64 << 20}, source = "test" }}
nand_bytes = {{ value = {256 << 20}, source = "no collection" }}
block_bytes = {{ value = {1 << 20}, source = "test" }}
page_bytes = {{ value = {work.request_bytes}, source = "one request" }}
pe_cycles = {{ value = 1000, source = "test" }}
power_loss_protection = {{ value = true, source = "no padding" }}
read_us = {{ value = {SERVICE_US}, source = "test" }}
program_us = {{ value = {SERVICE_US}, source = "test" }}
erase_us = {{ value = 1, source = "test" }}
""")
    names = [disk["name"] for disk in capture.info(recording)["disks"]]
    shape = wear.parse_array(spelled).for_disk(DISK_BYTES)
    times = wear.times(recording, wear.find(str(file)), (names.index("array"), shape))
    [found] = [each for each in times.intervals if each.name == "work"]
    requests = ("read_requests", "preread_requests", "write_requests")
    return [
        Member(
            int(sum(member[each] for each in requests)),
            member["busy_s"],
            member["busy_s"] / found.elapsed_s,
        )
        for member in found.members
    ]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that guests can read: their QEMU runs as another user."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("flags", "spelled", "work", "apart"),
    some(
        [
            ("-l 0 -c 64", "raid0,members=3,chunk=64K", skewed("read"), 0.08),
            ("-l 0 -c 64", "raid0,members=3,chunk=64K", skewed("write"), 0.08),
            ("-l 5 -c 64", "raid5,members=3,chunk=64K", blocks(), DELAYED),
        ],
        1,
    ),
    ids=["raid0-reads", "raid0-writes", "raid5-writes"],
)
def test_members_are_as_busy_as_the_kernel_counts(
    guests: Bench, shared: Path, flags: str, spelled: str, work: Work, apart: float
) -> None:
    iolog = shared / "iolog"
    iolog.write_text(work.iolog())
    cell = guests.cell("ext2", Step("work", script(work, iolog)))
    profile = replace(
        cell.profile,
        disks=(*cell.profile.disks, DiskSpec("array", DISK_BYTES)),
        after_mount=(("sh", "-c", setup(shared, flags)),),
    )
    result = guests.done(replace(cell, profile=profile), disk_size_bytes=16 << 20)
    assert result.output is not None
    assert result.recording is not None
    kernel = counted(result.output.read_text())
    model = modelled(result.recording, spelled, work, shared)
    assert [each.requests for each in kernel] == [each.requests for each in model]
    for counted_one, modelled_one in zip(kernel, model, strict=True):
        assert counted_one.busy_s == pytest.approx(modelled_one.busy_s, rel=0.05)
        # The model is an upper bound: its program and its md take no time.
        assert counted_one.utilisation <= modelled_one.utilisation + 0.01
        assert counted_one.utilisation == pytest.approx(modelled_one.utilisation, abs=apart)
