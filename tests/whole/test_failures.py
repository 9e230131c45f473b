"""Bad input on the real lab gives one clear error with the kernel's own words, and leaves nothing
behind."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loop_devices import attached_file, own_loop_device, replace_image

from fscost.lab.base import CellResult
from fscost.lab.native import claim
from fscost.workload.model import Step

pytestmark = pytest.mark.root

MIB = 1 << 20


def failed(result: CellResult, kind: str) -> str:
    assert (result.status, result.kind) == (
        "failed",
        kind,
    ), f"{result.status} ({result.kind}): {result.because}"
    assert result.samples == []
    assert result.recording is None
    return result.because


def test_a_flag_that_mkfs_refuses(bench: Any) -> None:
    """The profile knows the letters of flags; mkfs itself judges their values."""
    because = failed(bench.run(bench.cell("ext4 -O no_such_feature", "true")), "mkfs")
    assert "Invalid filesystem option set" in because or "no_such_feature" in because


@pytest.mark.parametrize(
    ("spelled", "words"),
    [("ext4 -o no_such_option", "no_such_option"), ("xfs -o no_such_option", "no_such_option")],
)
def test_an_option_that_mount_refuses_shows_the_kernels_words(
    bench: Any, spelled: str, words: str
) -> None:
    assert words in failed(bench.run(bench.cell(spelled, "true")), "mount")


def test_a_failing_workload_keeps_its_output(bench: Any) -> None:
    result = bench.run(bench.cell("ext4", "echo all is lost >&2; exit 3"))
    because = failed(result, "workload")
    assert "3" in because
    assert result.facts["failure"]["status"] == 3
    assert result.output is not None
    assert "all is lost" in result.output.read_text()


def test_a_workload_killed_by_a_signal(bench: Any) -> None:
    result = bench.run(bench.cell("ext4", "kill -KILL $$"))
    failed(result, "workload")
    assert result.facts["failure"]["signal"] == 9


def test_a_workload_that_does_not_end(bench: Any) -> None:
    failed(bench.run(bench.cell("ext4", Step("work", "sleep 600", timeout_s=1))), "timeout")


def test_a_workload_that_leaves_processes_behind(bench: Any) -> None:
    words = f"sleep 600.{os.getpid()}"  # no other program on this host says the same
    failed(bench.run(bench.cell("ext4", f"{words} > /dev/null 2>&1 &")), "left-running")
    assert not running(words)


def test_a_file_system_that_fills_up(bench: Any) -> None:
    result = bench.run(
        bench.cell("ext4", "dd if=/dev/zero of=big bs=1M count=64 status=none"),
        disk_size_bytes=32 * MIB,
    )
    assert "No space left" in (result.output.read_text() if result.output else "") + failed(
        result, "disk-full"
    )


def test_a_disk_too_small_for_its_file_system(bench: Any) -> None:
    result = bench.run(bench.cell("btrfs", "true"), disk_size_bytes=8 * MIB)
    assert result.status == "failed"
    assert result.kind in ("plan", "mkfs")
    assert "small" in result.because or "size" in result.because


def test_a_recording_beyond_its_limit_ends_its_cell(bench: Any) -> None:
    cell = bench.cell(
        "ext4",
        "for n in 1 2 3 4 5 6 7 8; do dd if=/dev/urandom of=file bs=1M count=16 conv=fsync"
        " status=none; done",
    )
    because = failed(bench.run(cell, max_recording_bytes=48 * MIB), "recording-too-large")
    assert "is larger than 48 MiB, its limit; raise --max-recording" in because
    bench.done(bench.cell("ext4", "true"), max_recording_bytes=300 * MIB)


def test_a_workload_that_ignores_errors_ends_with_its_recording(bench: Any) -> None:
    """Every request fails from then on, and the workload would retry until its timeout, which is
    longer than a test may take."""
    write = "dd if=/dev/urandom of=file bs=1M count=8 conv=fsync,notrunc status=none"
    cell = bench.cell("ext4", Step("work", f"while :; do {write}; sleep 0.1; done", timeout_s=3600))
    failed(bench.run(cell, max_recording_bytes=48 * MIB), "recording-too-large")


def test_the_disk_server_is_spared_when_memory_is_short(bench: Any) -> None:
    """PR_SET_IO_FLUSHER sets PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE (include/linux/sched.h)."""
    effective = int(
        next(
            line
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("CapEff")
        ).split()[1],
        16,
    )
    if not effective >> 24 & 1:
        pytest.skip("root without CAP_SYS_RESOURCE, which both requests need")
    found: list[tuple[int, int]] = []

    def look(step: str) -> None:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                name, _, rest = stat.read_text().rpartition(")")
                ours = (
                    name.endswith("(fscost-disk")
                    and str(bench.out).encode() in stat.with_name("cmdline").read_bytes()
                )
                if step == "work" and ours:
                    found.append(
                        (int(rest.split()[6]), int(stat.with_name("oom_score_adj").read_text()))
                    )

    cell = bench.cell("ext4", "cat /proc/self/oom_score_adj")
    result = bench.lab_of().run(cell, bench.options(), look)
    assert result.status == "done", result.because
    [(flags, score)] = found
    assert flags & 0x00180000 == 0x00180000, hex(flags)
    assert score == -500
    assert "500" in result.output.read_text().splitlines()


def test_the_hosts_disk_is_full(bench: Any, small_disk: Callable[[str], Path]) -> None:
    tiny = small_disk("24m")
    cell = bench.cell("ext4", "head -c 100000000 /dev/urandom > file")
    result = bench.run(cell, cell_dir=tiny / "cell")
    because = failed(result, "host-disk-full")
    assert str(tiny) in because or "space" in because
    assert not (tiny / "cell" / "recording.fscost").exists()
    assert shutil.disk_usage(tiny).used < 2 * MIB


def test_two_runs_at_once_do_not_touch_each_other(bench: Any, value: Any) -> None:
    """The lab keeps two runs apart; whether they may share a machine is decided by the run."""
    cell = bench.cell("ext4", "head -c 8000000 /dev/urandom > file; sync -f .")
    results: list[CellResult] = []
    # Each run has its own process: the agent dies with the thread that started it.
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if bench.run(cell, cell_dir=bench.out / "child").status == "done" else 1
        finally:
            os._exit(status)
    results.append(bench.done(cell, cell_dir=bench.out / "parent"))
    assert os.waitpid(pid, 0)[1] == 0
    assert value(results[0], "work", "device_write_bytes") >= 8_000_000


def test_a_cell_in_a_thread(bench: Any) -> None:
    """The kernel's parent-death signal follows the thread that started a process, not its
    process."""
    results: list[CellResult] = []
    thread = threading.Thread(target=lambda: results.append(bench.run(bench.cell("ext4", "true"))))
    thread.start()
    thread.join()
    assert results[0].status == "done", results[0].because


def test_a_real_device_is_used_without_a_recording(bench: Any, value: Any, tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(256 * MIB)
    with attached_file(image) as node:
        bench.device = claim(node, node)
        cell = bench.cell("ext4", "head -c 8000000 /dev/urandom > file")
        for _ in range(2):  # the second finds the first one's file system, which is ours to erase
            result = bench.done(cell, device=node)
            assert value(result, "work", "device_write_bytes") >= 8_000_000
            assert result.facts["conservation"].startswith("kernel's counters only")
            assert result.recording is None
        assert b"lost+found" in image.read_bytes()


def test_a_disk_that_is_replaced_after_the_labs_look_is_not_touched(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab's check is not the last: the agent opens the name again later and checks its own
    descriptor, too."""
    images = [tmp_path / "first", tmp_path / "second"]
    for image in images:
        with image.open("wb") as file:
            file.truncate(64 * MIB)
    with own_loop_device(images[0]) as node:
        found = claim(node, node)
        # A disk that is unplugged disappears; a loop device that is open would stay.
        found.descriptor.close()
        replace_image(node, images[1])
        monkeypatch.setattr(type(found), "refuse_if_busy", lambda _: None)
        bench.device = found
        result = bench.run(bench.cell("ext4", "true"), device=node)
        assert (result.status, result.kind) == ("failed", "attach"), result.because
        assert "is not the disk that was confirmed" in result.because
        assert not any(images[1].read_bytes())


def running(words: str) -> bool:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(
                errors="replace"
            ).strip() == words:
                return True
        except OSError:
            continue
    return False
