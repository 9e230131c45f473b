"""The programs that examine states, each in a mount namespace of its own."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any, Protocol

from fscost.crash import sizes
from fscost.errors import HostError
from fscost.host import interrupts, search_path, tool

About = Mapping[str, Any]
"""What all states of a recording share."""
Job = Mapping[str, Any]
Say = Callable[[int, int], None]
"""Is called with the number of jobs that are done, and of all."""
Take = Callable[[int, dict[str, Any]], Any]
"""Is called with the place of each job that is done, and its answer, one call at a time. Returns
what the caller keeps of it: an answer may hold the digests of 16 MiB."""
Finished = Callable[[int, dict[str, Any]], None]
"""Is called like `Take`, and returns nothing."""
Examine = Callable[[About, Sequence[Job], Finished], None]
"""Examines states."""
_MOST = 3 * (os.cpu_count() or 1)
"""Programs that examine states. Most of their time, they wait for mounts to settle."""


@dataclass(frozen=True)
class Made(Sequence[Job]):
    """Jobs that are made when they are sent: each may hold the numbers of a million blocks."""

    make: Callable[[Any], Job]
    of: Sequence[Any]

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, place: Any) -> Any:
        return self.make(self.of[place])


def whole(_: int, answer: dict[str, Any]) -> dict[str, Any]:
    """Keep all of an answer."""
    return answer


class Answered(Protocol):
    """Returns what `take` keeps of the answer to each job, in order."""

    def __call__(
        self, about: About, jobs: Sequence[Job], say: Say, take: Take = whole, /
    ) -> list[Any]: ...


def here(folder: Path, disk_server: Path) -> Examine:
    """Return what examines states on this kernel. The programs mount over `folder`, each in a
    namespace of its own, so that SIGKILL leaves nothing behind. `disk_server`: the program that
    records recoveries."""
    return partial(_answered, folder, disk_server)


def _answered(
    folder: Path, disk_server: Path, about: About, jobs: Sequence[Job], finished: Finished
) -> None:
    # btrfs tells its disks apart by an identity that all states share: one at a time.
    most = 1 if about["type"] == "btrfs" else max(1, min(_MOST, len(jobs)))
    programs = sizes.side_by_side(Path(about["recording"]), most)
    waiting: Queue[int] = Queue()
    for number in range(len(jobs)):
        waiting.put(number)
    lock = threading.Lock()
    is_stopped = threading.Event()

    def work(program: socket.socket) -> None:
        with program, program.makefile("rw") as lines:
            while not is_stopped.is_set():
                try:
                    number = waiting.get_nowait()
                except Empty:
                    return
                answer = _asked(lines, jobs[number])
                with lock:
                    finished(number, answer)

    more = {"folder": str(folder), "disk_server": str(disk_server)}
    with (
        _programs({**about, **more}, programs) as sockets,
        ThreadPoolExecutor(programs) as pool,
    ):
        try:
            for each in [pool.submit(work, one) for one in sockets]:
                each.result()
        except BaseException:
            is_stopped.set()
            raise


def _asked(program: IO[str], job: Mapping[str, Any]) -> dict[str, Any]:
    try:
        program.write(f"{json.dumps(job)}\n")
        program.flush()
        answer = program.readline()
    except OSError:
        answer = ""
    if not answer:
        raise HostError("the program that examines states has ended", "see the messages above")
    told: dict[str, Any] = json.loads(answer)
    return told


@contextlib.contextmanager
def _programs(about: Mapping[str, Any], count: int) -> Iterator[list[socket.socket]]:
    """Start programs, and yield a socket to each."""
    unshare = tool("unshare")
    if unshare is None:
        raise HostError("unshare is missing", "apt install util-linux")
    pairs = [socket.socketpair() for _ in range(count)]
    theirs = [other.fileno() for _, other in pairs]
    words = [str(unshare), "--mount", "--propagation", "private", "--"]
    words += [sys.executable, "-P", "-m", "fscost.crash.examine", *map(str, theirs)]
    # Ctrl-C is for the caller: it lets the programs finish their states and unmount.
    with (
        interrupts.held() as release,
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=theirs,
            text=True,
            start_new_session=True,
            # Their digests are compared with each other's.
            env={**os.environ, "PATH": search_path(), "PYTHONHASHSEED": "0"},
        ) as process,
    ):
        try:
            release()
            for _, other in pairs:
                other.close()
            assert process.stdin is not None
            process.stdin.write(f"{json.dumps(about)}\n")
            process.stdin.close()
            yield [own for own, _ in pairs]
        finally:
            # They end with their sockets, once their states are unmounted.
            for pair in pairs:
                for end in pair:
                    end.close()
