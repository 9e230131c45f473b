"""Placement of threads on processors: a child process stands in for QEMU and the disk server."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost.lab.vm.scheduling import Party, Processors

THREADS = (
    "import threading, time; [threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    " for _ in range(3)]; print(flush=True); time.sleep(60)"
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", THREADS], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def threads(pid: int) -> list[int]:
    return [int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()]


@pytest.mark.parametrize(
    ("is_permitted", "answering", "guests"),
    [
        pytest.param(True, os.SCHED_FIFO, os.SCHED_OTHER, marks=pytest.mark.root),
        (False, os.SCHED_OTHER, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK),
    ],
)
def test_all_threads_share_a_processor_and_answers_come_before_the_guest(
    child: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    is_permitted: bool,
    answering: int,
    guests: int,
) -> None:
    set_scheduler = os.sched_setscheduler

    def set_or_refuse(thread: int, policy: int, param: os.sched_param) -> None:
        if policy == os.SCHED_FIFO and not is_permitted:
            raise PermissionError
        set_scheduler(thread, policy, param)

    monkeypatch.setattr(os, "sched_setscheduler", set_or_refuse)
    guest = threads(child.pid)[-1]
    processor = max(os.sched_getaffinity(0))
    is_over = threading.Event()
    own = threading.Thread(target=is_over.wait)
    own.start()
    try:
        assert own.native_id is not None
        assert Party(guest, (child.pid,), (own.native_id,)).pin(processor)
        assert os.sched_getaffinity(own.native_id) == {processor}
    finally:
        is_over.set()
        own.join()
    assert len(threads(child.pid)) == 4
    for thread in threads(child.pid):
        assert os.sched_getaffinity(thread) == {processor}
        assert os.sched_getscheduler(thread) == (guests if thread == guest else answering)


def test_a_host_that_does_not_let_us_is_told(child: subprocess.Popen[bytes]) -> None:
    nowhere = 4000
    assert not Party(threads(child.pid)[0], (child.pid,), ()).pin(nowhere)
    child.kill()
    child.wait()
    assert not Party(child.pid, (child.pid,), ()).pin(max(os.sched_getaffinity(0)))


def test_guests_share_processors_only_where_there_are_too_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    processors = Processors()
    begun = []
    for process in (10, 11):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        with Processors().one() as first:
            begun.append(first)
    assert sorted(begun) == [3, 5], "of two programs each begins with another"
    with processors.one() as first, processors.one() as second:
        assert {first, second} == {3, 5}
        with processors.one() as third:
            assert third in (3, 5)
    with processors.one() as first, processors.one() as second:
        assert {first, second} == {3, 5}


@pytest.mark.root
@pytest.mark.parametrize("is_flooded", [True, False])
def test_who_answers_without_a_pause_is_real_time_no_longer(is_flooded: bool) -> None:
    script = "print(flush=True)\nwhile True: pass" if is_flooded else THREADS
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    left = threading.Event()
    # The guest's thread is one of this process, so all threads of the child answer.
    party = Party(threading.get_native_id(), (process.pid,), ())
    try:
        for thread in threads(process.pid):
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
        with party.bounded(left.set, look_s=0.05, most=0.2):
            assert left.wait(120 if is_flooded else 1) is is_flooded
        expected = os.SCHED_OTHER if is_flooded else os.SCHED_FIFO
        assert {os.sched_getscheduler(thread) for thread in threads(process.pid)} == {expected}
    finally:
        process.kill()
        process.communicate()
