"""A guest that panics, hangs, starves or dies is a failed cell with its kernel's words: never a hung run, never an exception."""

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fscost.lab.base import CellResult
from fscost.lab.cell import plan
from fscost.lab.vm import port
from fscost.workload.model import Step

from .conftest import restless

pytestmark = pytest.mark.guest

MIB = 1 << 20


def failed(result: CellResult, kind: str) -> str:
    assert (result.status, result.kind) == ("failed", kind), f"{result.status} ({result.kind}): {result.because}"
    assert result.samples == []
    assert result.recording is None
    assert children() == {}
    return result.because


def children() -> dict[int, str]:
    """Our own, with their programs."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                found[int(pid)] = Path(words[0].decode()).name
    return found


@contextlib.contextmanager
def once_working(bench: Any, act: Callable[[], None]) -> Iterator[None]:
    """`act` while the step `work` runs."""

    def wait() -> None:
        while "work" not in bench.begun and not ended.is_set():
            time.sleep(0.02)
        if not ended.is_set():
            act()

    ended = threading.Event()
    thread = threading.Thread(target=wait)
    bench.begun = []
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def signal_child(name: str, number: signal.Signals) -> None:
    [pid] = [pid for pid, program in children().items() if program == name]
    os.kill(pid, number)


def test_a_panic_is_told_in_the_kernels_words(guests: Any) -> None:
    because = failed(
        guests.run(guests.cell("ext4", "mkdir {scratch}/p; mount -t proc proc {scratch}/p; echo c > {scratch}/p/sysrq-trigger; sleep 600")),
        "guest",
    )
    assert "Kernel panic - not syncing: sysrq triggered crash" in because


@pytest.mark.slow
def test_a_workload_that_eats_all_memory_is_killed_alone(guests: Any) -> None:
    result = guests.run(guests.cell("ext4", "exec tail /dev/zero"))
    failed(result, "workload")
    assert result.facts["failure"]["signal"] == signal.SIGKILL


def test_a_workload_that_does_not_end(guests: Any) -> None:
    because = failed(guests.run(guests.cell("ext4", Step("work", "sleep 600", timeout_s=1))), "timeout")
    assert "within 1 s" in because


def test_a_guest_that_goes_on_for_ever(guests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "deadline_s", lambda *_: 0.1)
    because = failed(guests.run(guests.cell("ext4", Step("work", "sleep 600", timeout_s=20))), "guest")
    assert "did not end in the time that its steps may take" in because


def test_a_guest_that_wants_out(guests: Any, tmp_path: Path) -> None:
    """It is root, and finds the host's files read-only and no network; QEMU is in its sandbox."""
    kept = tmp_path / "input"
    kept.mkdir()
    (kept / "file").write_text("ours")
    wants = "mount -o remount,rw {input}; echo theirs > {input}/file; echo theirs > {input}/new; cat /sys/bus/pci/devices/*/class; sleep 1"
    modes: list[str] = []

    def look() -> None:
        [pid] = [pid for pid, program in children().items() if program == "qemu-system-x86_64"]
        modes.extend(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("Seccomp:"))

    with once_working(guests, look):
        result = guests.done(guests.cell("ext4", wants, input=kept))
    assert {path.name: path.read_text() for path in kept.iterdir()} == {"file": "ours"}
    assert result.output.read_text().count("Read-only file system") == 2
    assert re.findall(r"^0x01(?=....$)", result.output.read_text(), re.MULTILINE), "its disk"
    assert not re.findall(r"^0x02(?=....$)", result.output.read_text(), re.MULTILINE), "a network device"
    assert modes == ["2"], "filtered (proc(5))"


def test_what_is_told_of_a_guest_is_what_it_is(guests: Any) -> None:
    result = guests.done(guests.cell("ext4", "uname -r"))
    told = result.facts["guest"]
    assert told["kernel"] in result.output.read_text().splitlines()
    assert (told["accelerator"], told["is_emulated"]) in (("tcg", True), ("kvm", False))
    [unit] = {sample.unit for sample in result.samples if sample.metric == "wall_s"}
    assert unit == ("virtual_s" if told["is_emulated"] else "s")
    assert "cpu_disk_server_s" not in {sample.metric for sample in result.samples}, "it works outside of the guest"


def test_a_guest_that_hangs(guests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "SILENCE_S", 5)
    with once_working(guests, lambda: signal_child("qemu-system-x86_64", signal.SIGSTOP)):
        because = failed(guests.run(guests.cell("ext4", "sleep 600")), "guest")
    assert "silent for 5 s" in because


@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [("qemu-system-x86_64", "guest", "ended with status -9"), ("fscost-disk", "disk-server", "the disk server ended")],
)
def test_a_program_of_ours_is_killed(guests: Any, program: str, kind: str, words: str) -> None:
    with once_working(guests, lambda: signal_child(program, signal.SIGKILL)):
        because = failed(guests.run(guests.cell("ext4", "while true; do echo x > file; sync; done")), kind)
    assert words in because


def test_a_disk_that_never_rests(guests: Any) -> None:
    assert "disk main is still busy: something in the background goes on" in failed(
        guests.run(restless(guests.cell("ext4", "true"))), "left-running"
    )


def test_a_failing_workload_keeps_its_output(guests: Any) -> None:
    result = guests.run(guests.cell("ext4", "echo all is lost >&2; exit 3"))
    failed(result, "workload")
    assert result.facts["failure"]["status"] == 3
    assert "all is lost" in result.output.read_text()


@pytest.mark.root
def test_the_hosts_disk_is_full(guests: Any, small_disk: Callable[[str], Path]) -> None:
    tiny = small_disk("24m")
    because = failed(guests.run(guests.cell("ext4", "head -c 60000000 /dev/urandom > file; sync"), cell_dir=tiny / "cell"), "host-disk-full")
    assert "space" in because
    assert not list(tiny.rglob("*.fscost"))
