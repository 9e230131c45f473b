"""Every file system in a guest: formatted, mounted, written and remounted, with its content intact.
`done` means that recording and kernel agree to the byte, in each interval, for each disk."""

import itertools
import shutil
from collections.abc import Callable

import pytest
from tests.variants import some

from fscost import profile
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.vm import VmLab, kernels
from fscost.matrix import Cell
from fscost.profile import Profile
from fscost.workload.model import Step, Workload

pytestmark = [pytest.mark.guest, pytest.mark.slow]

MIB = 1 << 20
TYPES = [
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "jfs",
    "nilfs2",
    "reiserfs",
    "ntfs3",
    "exfat",
    "vfat",
]
EXTERNAL_JOURNALS = [
    "ext4-external-journal",
    "xfs-external-log",
    "jfs-external-journal",
    "reiserfs-external-journal",
]
LEVELS = {"0": 2, "1": 2, "5": 3, "6": 4, "10": 4}
CLEANER = "nilfs2-cleaner-always"
WRITTEN = {*TYPES, *EXTERNAL_JOURNALS, *(f"ext4-raid{level}" for level in LEVELS), CLEANER}
"""Profiles that other tests in this module write to."""
GUESTS_OWN = [
    found.name
    for found in profile.catalogue()
    if (found.array is not None or found.type in TYPES[5:]) and found.name not in WRITTEN
]

CHECK = "sha256sum -c --quiet SUMS"
SUM = "sha256sum big d/* > SUMS"
STEPS = (
    Step(
        "write",
        "mkdir d; for i in 1 2 3 4 5 6 7 8 9 10; do head -c ${i}3001 /dev/urandom > d/f$i; done;"
        f" head -c 2000000 /dev/urandom > big; {SUM}",
        settle="remount",
    ),
    Step(
        "change",
        f"{CHECK} && rm d/f1* && dd if=/dev/urandom of=big bs=64k seek=3 count=4 conv=notrunc,fsync"
        f" status=none && {SUM}",
        settle="remount",
        drop_caches=True,
    ),
    Step("verify", f"{CHECK} && test $(ls d | wc -l) = 8"),
)
RunInGuest = Callable[..., CellResult]


@pytest.fixture(scope="module")
def run_in_guest(tmp_path_factory: pytest.TempPathFactory) -> RunInGuest:
    """Return a function that runs steps on a profile in a guest, and returns the result of a cell
    that can run."""
    for program in ("mdadm", "mkfs.jfs"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    kernels.fetch()
    lab, out, numbers = VmLab(), tmp_path_factory.mktemp("cells"), itertools.count()

    def run(found: Profile, *steps: Step) -> CellResult:
        cell = Cell(found, Workload("mine", steps, disk_bytes=MIB), repetition=0, seed=1, order=0)
        folder = out / str(next(numbers))
        because = lab.unsupported_reason(cell, 512 * MIB)
        assert because is None, because
        return lab.run(cell, LabOptions(folder, disk_size_bytes=512 * MIB), lambda _: None)

    return run


def done(result: CellResult) -> CellResult:
    said = "" if result.output is None else result.output.read_text()[-2000:]
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}\n{said}"
    return result


def value(result: CellResult, phase: str, metric: str, disk: str = "") -> float:
    [found] = [
        sample.value
        for sample in result.samples
        if (sample.phase, sample.metric, sample.disk) == (phase, metric, disk)
    ]
    return found


@pytest.mark.parametrize("type_", some(TYPES, 1))
def test_content_survives_a_remount(run_in_guest: RunInGuest, type_: str) -> None:
    result = done(run_in_guest(profile.resolve(type_), *STEPS))
    assert result.facts["mount"]["type"] == type_
    assert value(result, "write", "device_write_bytes") >= 2_000_000
    assert value(result, "change", "device_write_bytes") >= 4 << 16
    assert value(result, "change", "device_read_bytes") >= 2_000_000, (
        "read from the disk, not from memory"
    )
    assert result.facts["inspect"]["superblock"].count("\n") > 3, "what was really made"
    if type_ in ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"):
        assert value(result, "change", "sync_calls") == 1
    [unit] = {each.unit for each in result.totals}
    clock = next(each.unit for each in result.samples if each.metric == "wall_s")
    assert unit == {"s": "ns", "virtual_s": "virtual_ns"}[clock]
    assert value(result, "change", "fsync_latency_ns_p50") > 0


@pytest.mark.parametrize("name", some(EXTERNAL_JOURNALS, 1))
def test_the_journal_is_on_its_own_disk(run_in_guest: RunInGuest, name: str) -> None:
    result = done(run_in_guest(profile.resolve(name), *STEPS))
    assert value(result, "change", "device_write_bytes", "journal") > 0
    data_bytes = value(result, "write", "device_write_bytes", "main")
    # xfs clears 2 MiB of its log at each mount.
    assert data_bytes > 2_600_000 > value(result, "write", "device_write_bytes", "journal"), (
        "metadata alone"
    )


@pytest.mark.parametrize("level", some(LEVELS, 1))
def test_each_member_of_an_array_is_a_recorded_disk(run_in_guest: RunInGuest, level: str) -> None:
    members = LEVELS[level]
    step = Step(
        "big", "dd if=/dev/zero of=f bs=1M count=48 conv=fsync status=none; cat /proc/mdstat"
    )
    result = done(run_in_guest(profile.resolve(f"ext4-raid{level}"), *STEPS, step))
    written = {
        disk: value(result, "big", "device_write_bytes", disk) / (48 * MIB)
        for disk in (f"m{number}" for number in range(members))
    }
    share = {"0": 1 / 2, "1": 1, "5": 1 / 2, "6": 1 / 2, "10": 1 / 2}[level]
    for disk, times in written.items():
        assert share <= times < share * 1.15, f"{disk} of {written}"
    assert f"Raid Level : raid{level}" in result.facts["inspect"]["array"]
    assert result.output is not None
    assert "resync" not in result.output.read_text()


def test_an_array_is_a_disk_among_others(run_in_guest: RunInGuest) -> None:
    result = done(run_in_guest(profile.resolve("btrfs-raid1 on md -l 1 -n 2"), *STEPS))
    for disk in ("m0", "m1", "mirror"):
        assert value(result, "write", "device_write_bytes", disk) >= 2_000_000


def test_the_cleaner_of_nilfs2_frees_what_is_overwritten(run_in_guest: RunInGuest) -> None:
    over = "for i in 1 2 3 4 5; do head -c 30000000 /dev/zero > f; sync -f .; done"
    # A waiting guest keeps a host processor busy.
    without, with_it = (
        done(run_in_guest(profile.resolve(name), Step("over", f"{over}{waits}")))
        for name, waits in (("nilfs2", ""), (CLEANER, "; sleep 20; sync -f ."))
    )
    assert value(without, "over", "space_used_bytes") > 150_000_000
    assert value(with_it, "over", "space_used_bytes") < 100_000_000


@pytest.mark.parametrize("name", some(GUESTS_OWN, 1))
def test_a_profile_that_only_guests_have_mounts(run_in_guest: RunInGuest, name: str) -> None:
    """tests/profile/test_mounts.py covers the other profiles."""
    found = profile.resolve(name)
    mount = done(run_in_guest(found, Step("write", "echo hello > file"))).facts["mount"]
    shown = f"{mount['options']},{mount['super_options']}".split(",")
    assert {"noatime", "lazytime", "sync"} & set(found.mount_options.split(",")) <= set(shown)
