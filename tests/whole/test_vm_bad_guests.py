"""A guest that panics, hangs, starves or dies is a failed cell with its kernel's words: never a hung run, never an exception."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fscost.lab.base import CellResult
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
    because = failed(guests.run(guests.cell("ext4", "echo c > /proc/sysrq-trigger; sleep 600")), "guest")
    assert "Kernel panic - not syncing: sysrq triggered crash" in because


@pytest.mark.slow
def test_a_workload_that_eats_all_memory_is_killed_alone(guests: Any) -> None:
    result = guests.run(guests.cell("ext4", "exec tail /dev/zero"))
    failed(result, "workload")
    assert result.facts["failure"]["signal"] == signal.SIGKILL


def test_a_workload_that_does_not_end(guests: Any) -> None:
    because = failed(guests.run(guests.cell("ext4", Step("work", "sleep 600", timeout_s=1))), "timeout")
    assert "within 1 s" in because


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
