"""Examination of states in a mount namespace of its own: `python -m fscost.crash.examine`.

The program reads one job a line from standard input and answers with one line. Everything that it
mounts belongs to its namespace, and its loop devices detach by themselves, so that nothing stays
behind when it is killed.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscost import capture
from fscost.crash.disks import Disk, attached, check_flags, mount_options
from fscost.crash.workloads import WORKLOADS
from fscost.host import tool

CHECKS = {"ext": ("e2fsck", "-fn"), "xfs": ("xfs_repair", "-n"), "btrfs": ("btrfs", "check")}
"""Read-only check of each family; its exit status is 0 for a file system without errors."""
_REPAIRS = {"ext": ("e2fsck", "-fy"), "xfs": ("xfs_repair", "-L")}
"""Repair of each family that its documentation recommends. `btrfs check --repair` is none."""
_REPAIRED = (0, 1, 2)
"""Exit status of e2fsck after it corrected everything (e2fsck(8))."""
_LIMIT_S = 60
_MOST_LINES = 12


def family(type_: str) -> str:
    """Return the family of a file system type."""
    return "ext" if type_.startswith("ext") else type_


@dataclass(frozen=True)
class _Place:
    images: Path
    root: Path


class _Examiner:
    def __init__(self, about: Mapping[str, Any], place: _Place) -> None:
        self._type, self._options = str(about["type"]), str(about["options"])
        self._device = str(about["device"])
        self._broken = WORKLOADS[str(about["workload"])].broken
        self._disks = [Disk(**disk) for disk in about["disks"]]
        self._place = place
        self._words: list[str] = []
        self._crash = capture.crash(Path(about["recording"]), about["without"])

    def examine(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Mount the state as a machine that starts again would, read everything that was promised,
        and check the file system. If that finds errors, repair the state and look again."""
        self._words = []
        with self._state(job) as devices:
            found = self._look(devices, job["kept_promises"])
        if found["mounts"] and found["is_clean"]:
            return {**found, "needs_repair": False, "words": self._words}
        repair = _REPAIRS.get(family(self._type))
        if repair is None:
            return {**found, "needs_repair": True, "words": self._words}
        with self._state(job) as devices:
            status = self._checked(repair, devices)
            after = self._look(devices, job["kept_promises"])
        return {
            "mounts": after["mounts"],
            "is_clean": after["is_clean"] and status in _REPAIRED,
            "broken": after["broken"],
            "needs_repair": True,
            "words": self._words,
        }

    @contextmanager
    def _state(self, job: Mapping[str, Any]) -> Iterator[list[Path]]:
        """Make the disks of a state, each behind a loop device."""
        with ExitStack() as stack:
            devices = []
            for number, disk in enumerate(self._disks):
                image = self._place.images / disk.name
                with image.open("xb") as file:
                    self._crash.export(
                        job["at_ns"], self._device, job["kept"], number, file.fileno(), image
                    )
                stack.callback(image.unlink)
                devices.append(stack.enter_context(attached(image, disk.sector_bytes)))
            yield devices
            if self._type == "btrfs":
                # It keeps the disks of each identity in mind, and all states share one.
                forget = ["btrfs", "device", "scan", "--forget", *map(str, devices)]
                subprocess.run(forget, capture_output=True, check=False)

    def _look(self, devices: Sequence[Path], kept: Mapping[str, int]) -> dict[str, Any]:
        # Several states of one xfs may be mounted at a time, and they share its identity (xfs(5)).
        shared = ["nouuid"] if self._type == "xfs" else []
        given = [self._options] if self._options else []
        options = ",".join([*shared, *mount_options(self._disks, devices), *given])
        mount = ["mount", "-t", self._type, *(["-o", options] if options else [])]
        if self._run([*mount, str(devices[0]), str(self._place.root)], devices) != 0:
            return {"mounts": False, "is_clean": False, "broken": []}
        try:
            broken = [list(each) for each in self._broken(self._place.root, kept)]
        finally:
            unmounted = self._run(["umount", str(self._place.root)], devices)
        is_clean = unmounted == 0 and self._checked(CHECKS[family(self._type)], devices) == 0
        return {"mounts": True, "is_clean": is_clean, "broken": broken}

    def _checked(self, check: Sequence[str], devices: Sequence[Path]) -> int:
        words = [*check, *check_flags(self._disks, devices), str(devices[0])]
        return self._run(words, devices)

    def _run(self, words: Sequence[str], devices: Sequence[Path]) -> int:
        """Run a program, and keep its name, its exit status and what it said, if it failed."""
        program = tool(words[0])
        if program is None:
            raise FileNotFoundError(words[0])
        done = subprocess.run(
            [program, *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace")
            for disk, device in zip(self._disks, devices, strict=True):
                name = f"DISK {disk.name}" if len(devices) > 1 else "DISK"
                said = re.sub(rf"{re.escape(str(device))}\b", name, said)
            lines = [line for line in said.splitlines() if line.strip()]
            self._words.append(f"{words[0]} ended with {done.returncode}:")
            self._words.extend(f"  {line}" for line in lines[:_MOST_LINES])
        return done.returncode


def main() -> None:
    """Answer jobs until standard input ends."""
    about = json.loads(sys.stdin.readline())
    folder = Path(about["folder"])
    place = _Place(folder / "images", folder / "root")
    # The recording is opened before the mount hides it.
    examiner = _Examiner(about, place)
    subprocess.run(["mount", "-t", "tmpfs", "fscost-crash", folder], check=True)
    place.images.mkdir()
    place.root.mkdir()
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(examiner.examine(json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.umask(0o077)
    main()
