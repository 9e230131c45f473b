"""Which threads run where: a child of ours stands for QEMU and the disk server."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost.lab.vm.turns import Processors, take

THREADS = "import threading, time; [threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(3)]; print(flush=True); time.sleep(60)"


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


def may_be_real_time() -> bool:
    return subprocess.run(["chrt", "--fifo", "1", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_all_threads_share_a_processor_and_the_guest_gives_way(child: subprocess.Popen[bytes]) -> None:
    guest = threads(child.pid)[-1]
    processor = max(os.sched_getaffinity(0))
    own = threading.Thread(target=time.sleep, args=(2,), daemon=True)
    own.start()
    assert own.native_id is not None
    assert take(guest, (child.pid,), (own.native_id,), processor)
    assert os.sched_getaffinity(own.native_id) == {processor}
    assert len(threads(child.pid)) == 4
    in_front = os.SCHED_FIFO if may_be_real_time() else os.SCHED_OTHER
    for thread in threads(child.pid):
        assert os.sched_getaffinity(thread) == {processor}
        policy = os.sched_getscheduler(thread)
        assert policy == (os.SCHED_IDLE | os.SCHED_RESET_ON_FORK if thread == guest else in_front)


def test_a_host_that_does_not_let_us_is_told(child: subprocess.Popen[bytes]) -> None:
    nowhere = 4000
    assert not take(threads(child.pid)[0], (child.pid,), (), nowhere)
    child.kill()
    child.wait()
    assert not take(child.pid, (child.pid,), (), max(os.sched_getaffinity(0)))


def test_guests_share_processors_only_where_there_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    processors = Processors()
    with processors.one() as first, processors.one() as second:
        assert {first, second} == {3, 5}
        with processors.one() as third:
            assert third in (3, 5)
    with processors.one() as first, processors.one() as second:
        assert {first, second} == {3, 5}
