"""Examination of states in mount namespaces of their own: `python -m fscost.crash.examine`.

Several programs examine states side by side. Each reads one job a line from its socket and answers
with one line. Everything that it mounts belongs to its namespace, and its loop devices detach by
themselves, so that nothing stays behind when it is killed.
"""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fscost import capture
from fscost.crash import mounting
from fscost.crash.disks import Disk, attached
from fscost.crash.examination import Examiner
from fscost.crash.recovery import recorder, second_states


class _Images:
    """Disks from images in memory, behind loop devices."""

    def __init__(self, about: Mapping[str, Any], recording: Path, folder: Path) -> None:
        self._disks = [Disk(**disk) for disk in about["disks"]]
        self._device = str(about["device"])
        self.crashes = capture.crashes(recording)
        self._folder = folder

    @contextmanager
    def disk(self, number: int, job: Mapping[str, Any]) -> Iterator[Path]:
        disk = self._disks[number]
        image = self._folder / disk.name
        crash = self.crashes(tuple(job["without"]))
        # The file holds the state before this one, and most pages of both are equal.
        with os.fdopen(os.open(image, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
            at_ns, kept = job["at_ns"], job["kept"]
            crash.export(at_ns, self._device, kept, number, file.fileno(), image)
        with attached(image, disk.sector_bytes) as device:
            yield device

    @contextmanager
    def blank(self, name: str, number: int) -> Iterator[Path]:
        disk, image = self._disks[number], self._folder / name
        with image.open("wb") as file:
            file.truncate(disk.size_bytes)
        try:
            with attached(image, disk.sector_bytes) as device:
                yield device
        finally:
            image.unlink()


def _recovered(
    about: Mapping[str, Any], images: _Images, folder: Path, job: Mapping[str, Any]
) -> dict[str, Any]:
    """Record the recovery of a state, cut it at instants of its own, and examine what is left."""
    asked, root = job["again"], folder / "root"
    recording = Path(asked.get("recording", folder / "recovery"))
    with recorder(about, images.crashes, recording) as disks:
        Examiner(about, disks, root).recover(job, disks)
    examiner = Examiner(about, _Images(about, recording, folder / "images"), root)
    seconds = [
        {**second, "found": examiner.answer({**job, **second})}
        for second in second_states(recording, about["device"], asked)
    ]
    if "recording" not in asked:
        recording.unlink()
    return {"again": seconds}


def _serve(about: Mapping[str, Any], images: _Images, channel: socket.socket) -> None:
    """Answer jobs until the socket ends."""
    mounting.unshare()
    folder = Path(about["folder"])
    if failed := mounting.mount("fscost-crash", str(folder), "tmpfs", ""):
        raise OSError(f"mount of a tmpfs at {folder} failed: {failed}")
    for name in ("images", "root"):
        (folder / name).mkdir()
    examiner = Examiner(about, images, folder / "root")
    with channel.makefile("rw") as lines:
        for line in lines:
            job = json.loads(line)
            is_again = "again" in job
            found = _recovered(about, images, folder, job) if is_again else examiner.answer(job)
            lines.write(f"{json.dumps(found)}\n")
            lines.flush()


def main() -> None:
    """Fork a program for each socket whose descriptor is named, and wait for them. The start of
    Python, its modules and the recording cost more than many states: all programs share them."""
    if not (line := sys.stdin.readline()):
        return  # nobody asks any more
    about = json.loads(line)
    # The recording is opened before a mount hides it.
    images = _Images(about, Path(about["recording"]), Path(about["folder"]) / "images")
    images.crashes(()).hold()
    channels = [socket.socket(fileno=int(number)) for number in sys.argv[1:]]
    own = os.getpid()
    while channels:
        channel = channels.pop()
        if os.fork() == 0:
            mounting.end_with(own)
            # Its share of the processors is its own, too (sched(7), autogroups).
            os.setsid()
            for other in channels:
                other.close()
            _serve(about, images, channel)
            return
        # A program has ended once nobody has its socket.
        channel.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    os.umask(0o077)
    main()
