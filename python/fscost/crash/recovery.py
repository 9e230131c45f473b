"""Recording of a recovery: a state's disks come from fscost's disk server, which records what a
mount writes to them."""

import errno
import hashlib
import json
import os
import random
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fscost import capture
from fscost.crash.disks import Disk, attached

if TYPE_CHECKING:
    from collections.abc import Callable

    from fscost._native import Crash

_MESSAGE_BYTES = 1 << 16
MARKS = _BEGIN, _END = "mount", "end"
"""Marks. What precedes `mount` is explained as the work of mkfs (crates/explain/src/engine.rs)."""
_STATES_PER_CUT = 12


class Recorder:
    """Disks of a state that record each request (docs/cell-protocol.md). `crashes`: where the
    contents come from."""

    def __init__(
        self,
        about: Mapping[str, Any],
        crashes: "Callable[[tuple[int, ...]], Crash]",
        channel: socket.socket,
    ) -> None:
        self._disks = [Disk(**disk) for disk in about["disks"]]
        self._device, self._crashes = str(about["device"]), crashes
        self._channel = channel
        _, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 1)
        if not descriptors:
            raise OSError("the disk server did not start")
        self._mount = descriptors[0]

    @contextmanager
    def disk(self, number: int, job: Mapping[str, Any]) -> Iterator[Path]:
        """Yield a recorded device with the content of a state."""
        disk = self._disks[number]
        served = Path(f"/proc/self/fd/{self._mount}/{disk.name}")
        crash = self._crashes(tuple(job["without"]))
        image = os.memfd_create(disk.name)
        try:
            crash.export(job["at_ns"], self._device, job["kept"], number, image, served)
            _copy(image, served)
        finally:
            os.close(image)
        with attached(served, disk.sector_bytes, is_direct=True) as device:
            yield device

    def blank(self, name: str, number: int) -> Any:
        """Refuse a new disk: no job that loses a disk is recorded."""
        raise ValueError(f"{name}: a recorded recovery has no new disk ({number})")

    def begin(self, devices: Sequence[Path | None]) -> None:
        """Make everything durable that is on the disks, before the recovery."""
        for device in devices:
            if device is not None:
                with device.open("rb") as file:
                    os.fsync(file.fileno())
        self._ask({"mark": {"name": _BEGIN}})

    def end(self) -> None:
        """Mark the end of the recovery."""
        self._ask({"mark": {"name": _END}})

    def finish(self) -> None:
        """Finish the recording. Nothing uses the disks any more."""
        os.close(self._mount)
        self._ask({"finish": {}})

    def _ask(self, message: Mapping[str, Any]) -> None:
        self._channel.send(json.dumps(message).encode())
        answer = json.loads(self._channel.recv(_MESSAGE_BYTES) or b'{"error": "no answer"}')
        if "error" in answer:
            raise OSError(f"the disk server failed: {answer['error']}")


@contextmanager
def recorder(
    about: Mapping[str, Any], crashes: "Callable[[tuple[int, ...]], Crash]", recording: Path
) -> Iterator[Recorder]:
    """Start a disk server that writes to `recording`."""
    disks = [Disk(**disk) for disk in about["disks"]]
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [about["disk_server"], "serve", "--recording", str(recording), "--front-end", "fuse"]
    words += ["--control-fd", str(other.fileno()), "--ppid", str(os.getpid())]
    for disk in disks:
        words += ["--disk", f"{disk.name}={disk.size_bytes},logical={disk.sector_bytes}"]
    with own, subprocess.Popen(words, pass_fds=[other.fileno()]) as process:
        try:
            other.close()
            found = Recorder(about, crashes, own)
            yield found
            found.finish()
        except BaseException:
            process.kill()
            raise


def _copy(image: int, served: Path) -> None:
    """Copy all data of an image. sendfile(2) passes whole pages on: the disk server takes whole
    sectors only."""
    end = 0
    with served.open("r+b", buffering=0) as file:
        while (data := _next_data(image, end)) is not None:
            end = os.lseek(image, data, os.SEEK_HOLE)
            file.seek(data)
            while data < end:
                data += os.sendfile(file.fileno(), image, data, end - data)


def _next_data(image: int, at: int) -> int | None:
    """Return where data follows, if any does."""
    try:
        return os.lseek(image, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


def second_states(
    recording: Path, device: str, asked: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the states that a recovery is cut to: the one that is asked for by its numbers, or
    `most` that `seed` chooses among those with different contents. `is_unflushed`: as if the
    recovery had sent no flush."""
    begin_ns, end_ns = _between(recording)
    flushes, traffic = _traffic(recording, begin_ns)
    without = flushes if asked.get("is_unflushed") else []
    crash = capture.crash(recording, without)
    cuts = crash.cuts(begin_ns, end_ns, 1 << 20)
    if "kept" in asked:
        chosen = [(asked["cut"], asked["how"], asked["kept"])]
        found = chosen if traffic == asked["traffic"] else []
    else:
        found = _chosen(crash, cuts, device, asked["most"], asked["seed"])
    for cut, how, kept in found:
        at_ns = cuts[cut]
        numbers = {"cut": cut, "how": how, "kept": kept, "traffic": traffic}
        pending = len(crash.pending(at_ns, device))
        yield {"at_ns": at_ns, "pending": pending, "without": without, **numbers}


def _chosen(
    crash: "Crash", cuts: Sequence[int], device: str, most: int, seed: int
) -> list[tuple[int, str, Sequence[int]]]:
    chance = random.Random(seed)
    places = sorted(chance.sample(range(len(cuts)), min(len(cuts), 2 * most)))
    different: dict[str, tuple[int, str, Sequence[int]]] = {}
    for place in places:
        for how, kept, identity in crash.states(cuts[place], device, _STATES_PER_CUT, seed):
            different.setdefault(identity, (place, how, kept))
    return sorted(chance.sample(list(different.values()), min(len(different), most)))


def _between(recording: Path) -> tuple[int, int]:
    """Return when the recovery began and ended."""
    with capture.opened(recording) as opened:
        at_ns = {name: at for at, name, _ in opened.marks()}
    return at_ns[_BEGIN], at_ns[_END]


def _traffic(recording: Path, begin_ns: int) -> tuple[list[int], str]:
    """Return the numbers of a recovery's flushes, and a digest of its requests without their
    contents: these have times."""
    flushes, digest = [], hashlib.sha256()
    for batch in capture.requests(recording):
        names = ("event", "disk", "op", "offset", "length", "submit_ns")
        columns = (batch.column(name).to_pylist() for name in names)
        for event, disk, op, offset, length, submit_ns in zip(*columns, strict=True):
            if submit_ns < begin_ns or op == "read":
                continue
            digest.update(f"{disk} {op} {offset} {length}\n".encode())
            if op == "flush":
                flushes.append(event)
    return flushes, digest.hexdigest()[:16]
