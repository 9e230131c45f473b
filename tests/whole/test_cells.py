"""Cells on real file systems: their numbers match the kernel's, and the file contents are
present."""

import json
import re
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.images import export_image

from fscost import capture
from fscost.workload.model import Step

pytestmark = pytest.mark.root

MIB = 1 << 20
FLUSH_S = 0.02
"""Time that a slow disk takes to flush."""
PROFILES = [
    "ext2",
    "ext3",
    "ext4",
    "ext4 -O ^has_journal",
    "ext4 -o noatime,lazytime",
    "ext4 -b 1024",
    "xfs",
    "xfs -o noatime",
    "btrfs",
    "btrfs -o noatime,compress=zstd",
    "ext4-external-journal",
    "xfs-external-log",
    "btrfs-raid1",
]


@pytest.mark.parametrize("spelled", PROFILES)
def test_a_cell_conserves_its_bytes(bench: Any, value: Any, spelled: str) -> None:
    """The cell has small files, a synced log, deletes and reads. `done` means that recording and
    kernel agree for each interval and disk."""
    steps = (
        Step(
            "unpack",
            "mkdir tree; for i in $(seq 200); do head -c $((i * 97)) /dev/urandom > tree/$i; done",
            measured=False,
        ),
        Step(
            "log",
            "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/urandom of=log bs=4k count=1 oflag=append"
            " conv=notrunc,fsync status=none; done",
        ),
        Step("read", "cat tree/* > /dev/null", drop_caches=True),
        Step("delete", "rm -r tree", settle="remount"),
        Step("big", "dd if=/dev/zero of=big bs=1M count=16 status=none"),
    )
    result = bench.done(bench.cell(spelled, *steps), disk_size_bytes=640 * MIB)
    assert bench.begun == ["mkfs", "mount", "unpack", "log", "read", "delete", "big"]
    assert value(result, "mkfs", "device_write_bytes") > 0
    assert value(result, "log", "device_write_bytes") >= 8 * 4096
    assert value(result, "log", "device_flushes") >= 8 if "external" not in spelled else True
    assert [
        value(result, name, "sync_calls") for name in ("mkfs", "unpack", "log", "read", "delete")
    ] == [0, 0, 8, 0, 0]
    assert value(result, "read", "device_read_bytes") > 1_500_000
    assert value(result, "big", "program_write_bytes") >= 16 * MIB
    if "compress" not in spelled:
        assert value(result, "big", "device_write_bytes") >= 16 * MIB
    assert value(result, "log", "program_write_bytes") >= 8 * 4096
    assert value(result, "read", "program_read_bytes") >= 1_900_000
    assert value(result, "big", "space_used_bytes") > 0
    assert result.facts["mount"]["type"] == spelled[: len(result.facts["mount"]["type"])]


@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_the_numbers_are_those_that_the_workload_itself_reads_in_sysfs(
    bench: Any, value: Any, spelled: str
) -> None:
    """The reference is independent of our code: the device's own counters, printed by the steps."""
    look = "echo; echo STAT $(cat /sys/block/$(basename {disk.main})/stat)"
    steps = (
        Step("first", look),
        Step("write", "head -c 3000000 /dev/urandom > file"),
        Step("last", look, settle="none"),
    )
    result = bench.done(bench.cell(spelled, *steps))
    assert result.output is not None
    before, after = (
        line.split()[1:]
        for line in result.output.read_text().splitlines()
        if line.startswith("STAT")
    )
    sectors = int(after[6]) - int(before[6])
    assert sectors * 512 == value(result, "first", "device_write_bytes") + value(
        result, "write", "device_write_bytes"
    )
    assert int(after[4]) - int(before[4]) == value(
        result, "first", "device_write_requests"
    ) + value(result, "write", "device_write_requests")
    assert sectors * 512 >= 3_000_000


@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_space_is_what_the_workload_itself_sees(bench: Any, value: Any, spelled: str) -> None:
    """The reference is independent of our code: statfs and the device's size, printed by a step."""
    look = "stat -f -c 'SPACE %S %b %f %a' . ; cat /sys/block/$(basename {disk.main})/size"
    steps = (Step("write", "head -c 3000000 /dev/urandom > file"), Step("look", look))
    result = bench.done(bench.cell(spelled, *steps))
    assert result.output is not None
    *_, told, sectors = result.output.read_text().splitlines()
    unit, blocks, free, available = map(int, told.split()[1:])
    size = int(sectors) * 512
    assert {
        name: value(result, "look", f"space_{name}_bytes")
        for name in ("taken", "overhead", "reserved", "used")
    } == {
        "taken": size - available * unit,
        "overhead": size - blocks * unit,
        "reserved": (free - available) * unit,
        "used": (blocks - free) * unit,
    }


@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_what_is_written_after_the_command_is_told_apart(
    bench: Any, value: Any, spelled: str
) -> None:
    """The reference is the device's own counter, which the command reads first and last."""
    look = "echo; echo STAT $(cat /sys/block/$(basename {disk.main})/stat)"
    steps = (
        Step("synced", "dd if=/dev/urandom of=synced bs=1M count=4 conv=fsync status=none"),
        Step("late", f"{look}; head -c 3000000 /dev/urandom > late; {look}"),
    )
    result = bench.done(bench.cell(spelled, *steps))
    assert result.output is not None
    before, after = (
        int(line.split()[7]) * 512
        for line in result.output.read_text().splitlines()
        if line.startswith("STAT")
    )
    settled = {name: value(result, name, "settle_write_bytes") for name in ("synced", "late")}
    assert settled["synced"] < MIB < 4 * MIB <= value(result, "synced", "device_write_bytes")
    # The agent reads its counter just after the command ends; the command reads it just after the
    # step begins.
    by_counter = value(result, "late", "device_write_bytes") - (after - before)
    assert min(3_000_000, by_counter) <= settled["late"] <= by_counter
    assert 0 <= value(result, "late", "unmount_write_bytes") < MIB
    assert {
        sample.phase for sample in result.samples if sample.metric == "unmount_write_bytes"
    } == {"late"}


@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_tagged_content_is_in_the_recording_and_only_after_it_was_written(
    bench: Any, spelled: str, tmp_path: Path
) -> None:
    tag = b"fscost tag %d " % bench.cell(spelled, "true").seed
    block = (tag * 400)[:4096]
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "file").write_bytes(block * 100)
    cell = bench.cell(
        spelled,
        Step("before", "true"),
        Step("write", "cp {input}/file ."),
        Step("after", "true"),
        input=tmp_path / "input",
    )
    result = bench.done(cell)
    assert result.recording is not None
    recording = capture._open(result.recording)
    for mark, copies in (("write", 0), ("after", 100)):
        image = tmp_path / mark
        export_image(recording, 0, image, mark=mark)
        assert image.read_bytes().count(block) == copies, mark
        image.unlink()


def test_the_table_of_requests_has_every_byte(bench: Any, value: Any) -> None:
    result = bench.done(bench.cell("ext4", "head -c 5000000 /dev/urandom > file"))
    [folder] = bench.out.glob("cell*")
    table = pq.read_table(folder / "requests.parquet").to_pydict()
    rows = list(zip(table["op"], table["length"], strict=True))
    changed = sum(
        length for op, length in rows if op in ("write", "write_zeroes", "punch", "discard")
    )
    phases = ("mkfs", "mount", "work")
    assert changed == sum(
        value(result, phase, metric)
        for phase in phases
        for metric in ("device_write_bytes", "device_discard_bytes")
    )


def test_two_disks_have_rows_of_their_own(bench: Any, value: Any) -> None:
    cell = bench.cell(
        "ext4-external-journal",
        "for i in 1 2 3 4; do dd if=/dev/zero of=f$i bs=4k count=1 conv=fsync status=none; done",
    )
    result = bench.done(cell)
    parts = [value(result, "work", "device_write_bytes", disk) for disk in ("main", "journal")]
    assert min(parts) > 0
    assert sum(parts) == value(result, "work", "device_write_bytes")


def test_the_window_closes_after_the_unmount(bench: Any, value: Any) -> None:
    """Data that the last step left in memory is charged to that step, even without settling."""
    result = bench.done(
        bench.cell("ext4", Step("work", "head -c 4000000 /dev/urandom > file", settle="none"))
    )
    assert value(result, "work", "device_write_bytes") >= 4_000_000


def test_relatime_is_charged_for_the_first_read_and_noatime_is_not(bench: Any, value: Any) -> None:
    steps = (
        Step("make", "mkdir t; for i in $(seq 500); do echo $i > t/$i; done", measured=False),
        Step("read", "cat t/* > /dev/null"),
    )
    written = {
        spelled: value(bench.done(bench.cell(spelled, *steps)), "read", "device_write_bytes")
        for spelled in ("ext4", "ext4 -o noatime")
    }
    assert written["ext4"] > 3 * written["ext4 -o noatime"]


def test_what_was_really_mounted_is_kept(bench: Any) -> None:
    result = bench.done(bench.cell("ext4 -O ^has_journal -o noatime,lazytime,nodelalloc", "true"))
    assert "noatime" in result.facts["mount"]["options"]
    assert "lazytime" in result.facts["mount"]["super_options"]
    assert "nodelalloc" in result.facts["mount"]["super_options"]
    assert "has_journal" not in result.facts["inspect"]["superblock"]
    assert re.search("Filesystem UUID", result.facts["inspect"]["superblock"])


def test_logical_blocks_and_cache_are_as_promised(bench: Any) -> None:
    queue = bench.done(bench.cell("xfs", "true")).facts["disks"]["main"]["queue"]
    assert str(queue["logical_block_size"]) == "512"
    assert queue["write_cache"] == "write back"


def test_the_probe_measures_pauses(bench: Any, value: Any) -> None:
    cell = bench.cell(
        "ext4",
        "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=f bs=1M count=4 conv=fsync status=none; done;"
        " sleep 1",
    )
    result = bench.done(cell, probe_interval_ms=10)
    assert value(result, "work", "probe_operations") >= 1
    # The probe's own writes are measured on an idle file system, for two seconds.
    assert value(result, "probe-alone", "probe_operations") >= 1
    for phase in ("work", "probe-alone"):
        most = value(result, phase, "wall_s") / 0.01 + 1
        assert value(result, phase, "probe_operations") <= most
    assert 0 < value(result, "probe-alone", "device_write_bytes") < 10 << 20
    assert (
        0
        < value(result, "work", "pause_s_p99")
        <= value(result, "work", "pause_s_max")
        < value(result, "work", "wall_s")
    )


def has_kernel_threads() -> bool:
    """True if kernel threads are visible. They are hidden in a PID namespace such as a container's,
    where no CPU total is reported."""
    kthreadd = Path("/proc/2/comm")
    return kthreadd.exists() and kthreadd.read_text() == "kthreadd\n"


def test_cpu_is_the_commands_and_not_the_servers(bench: Any, value: Any) -> None:
    result = bench.done(bench.cell("ext4", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"))
    assert value(result, "work", "cpu_user_s") > 0.05
    parts = value(result, "work", "cpu_user_s") + value(result, "work", "cpu_system_s")
    if has_kernel_threads():
        assert value(result, "work", "cpu_s") >= parts
    else:
        assert "cpu_s" not in {sample.metric for sample in result.samples}
    assert value(result, "work", "cpu_disk_server_s") < value(result, "work", "cpu_user_s")
    assert value(result, "work", "wall_s") >= value(result, "work", "command_s")


def test_the_same_seed_is_the_same_work(bench: Any, value: Any) -> None:
    """mkfs with one seed writes the same bytes: UUIDs and hash seeds come from the cell's seed."""
    first, second = (bench.done(bench.cell("ext4", 'test "$FSCOST_SEED" = 7')) for _ in range(2))
    assert value(first, "mkfs", "device_write_bytes") == value(second, "mkfs", "device_write_bytes")


@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_fsync_of_a_folder_is_a_call_for_durability(bench: Any, value: Any, spelled: str) -> None:
    """xfs has a tracepoint of its own for it (fs/xfs/xfs_file.c, xfs_dir_fsync)."""
    script = """
import os
folder = os.open(".", os.O_RDONLY)
os.close(os.open("f", os.O_WRONLY | os.O_CREAT))
os.fsync(folder)
print("INODE", os.fstat(folder).st_ino)
"""
    sync = Step("sync", f"python3 -c '{script}'", settle="none")
    result = bench.done(bench.cell(spelled, sync, Step("after", "true")))
    assert value(result, "sync", "sync_calls") == 1
    with capture.opened(result.recording) as recording:
        intervals = {interval["name"]: interval for interval in recording.intervals()}
    [caller] = json.loads(intervals["after"]["detail"])["sync_calls"]["callers"]
    assert f"INODE {caller['inode']}" in result.output.read_text()


@pytest.mark.parametrize("spelled", ["ext4", "xfs", "btrfs"])
def test_calls_for_durability_are_in_the_marks_when_they_were_made(
    bench: Any, value: Any, spelled: str, tmp_path: Path
) -> None:
    """Times lie between the readings of the workload's own clock around each call: fsync, fdatasync
    and an O_SYNC write with sleeps between them. Each flushes the disk, which takes its time."""
    script = """
import os, time
file = os.open("f", os.O_WRONLY | os.O_CREAT)
synced = os.open("f", os.O_WRONLY | os.O_SYNC)
before, after = [], []
for call in (os.fsync, os.fdatasync, lambda _: os.write(synced, b"x")):
    time.sleep(0.1)
    os.write(file, b"data")
    before.append(time.monotonic())
    call(file)
    after.append(time.monotonic())
print("TIMES", *before, *after)
"""
    slow = tmp_path / "slow.toml"
    slow.write_text(text := f'[latency]\nmodel = "constant"\nflush_us = {FLUSH_S * 1e6:.0f}\n')
    cell = bench.cell(
        f"{spelled} --disk main={slow}",
        Step("before", "true"),
        Step("sync", f"python3 -c '{script}'", settle="none"),
        Step("after", "true"),
    )
    result = bench.done(cell, device_models={str(slow): text})
    assert value(result, "sync", "sync_calls") == 3
    assert result.recording is not None
    assert result.output is not None
    with capture.opened(result.recording) as recording:
        intervals = {interval["name"]: interval for interval in recording.intervals()}
    details = {name: json.loads(each["detail"] or "{}") for name, each in intervals.items()}
    whole_s = (intervals["sync"]["end_ns"] - intervals["sync"]["begin_ns"]) / 1e9
    calls = details["after"]["sync_calls"]
    assert calls["count"] == 3
    # Calls are reported in the mark that ends their interval: the next interval's mark.
    none: dict[str, list[object]] = {"after_us": [], "took_us": [], "caller": [], "callers": []}
    assert details["sync"]["sync_calls"] == {"count": 0, **none}
    # fsync and fdatasync are timed, the write is not; each was for the same file.
    assert [took > 0 for took in calls["took_us"]] == [True, True, False]
    assert calls["caller"] == [0, 0, 0]
    [caller] = calls["callers"]
    assert caller["name"].startswith("python3")
    assert caller["inode"] > 0
    line = next(line for line in result.output.read_text().splitlines() if line.startswith("TIMES"))
    numbers = [float(word) for word in line.split()[1:]]
    before, after = numbers[:3], numbers[3:]
    # Each time is in microseconds since the call before.
    first, *others = accumulate(us / 1e6 for us in calls["after_us"])
    assert 0.1 <= first <= whole_s - (after[2] - after[0])
    # Each begins a flush at least before its end.
    latest = [end - FLUSH_S for end in after]
    for number, at in enumerate(others, 1):
        least, most = before[number] - latest[0], latest[number] - before[0]
        assert least - 1e-5 <= at - first <= most + 1e-5, number
    # Durations of fsync and fdatasync; the write is left out. They are rounded by up to 0.4 %.
    timed = [value(result, "sync", f"fsync_latency_ns_{name}") / 1e9 for name in ("p50", "max")]
    took = sorted(end - begin for begin, end in zip(before[:2], after[:2], strict=True))
    for inside, whole in zip(timed, took, strict=True):
        assert 0.99 * FLUSH_S <= inside <= 1.01 * whole
    # The agent syncs the disks after the last step; that sync does not belong to the workload.
    assert {s.phase for s in result.samples if s.metric == "fsync_latency_ns_max"} == {"sync"}
    assert [each.value / 1e9 for each in result.totals[::3]] == timed
