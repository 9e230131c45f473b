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
from fscost.crash.disks import Disk, attached, check_flags, family, mount_options
from fscost.crash.fsynced import snapshot
from fscost.crash.lost import WAYS, Way
from fscost.crash.workloads import checked
from fscost.host import tool

CHECKS = {"ext": ("e2fsck", "-fn"), "xfs": ("xfs_repair", "-n"), "btrfs": ("btrfs", "check")}
"""Read-only check of each family; its exit status is 0 for a file system without errors."""
_REPAIRS = {"ext": ("e2fsck", "-fy"), "xfs": ("xfs_repair", "-L")}
"""Repair of each family that its documentation recommends. `btrfs check --repair` is none."""
_REPAIRED = (0, 1, 2)
"""Exit status of e2fsck after it corrected everything (e2fsck(8))."""
_NEW = "the new disk"
"""Its image has a name that no disk of a profile can have."""
_NO_DEVICE = 60 << 8
"""A device number for local and experimental use (admin-guide/devices.txt): no disk has it."""
_NOTHING: Mapping[str, Any] = {"mounts": False, "is_clean": False, "broken": [], "files": None}
_LIMIT_S = 60
_MOST_LINES = 12


@dataclass(frozen=True)
class _Place:
    images: Path
    root: Path


class _Examiner:
    def __init__(self, about: Mapping[str, Any], place: _Place) -> None:
        self._type, self._options = str(about["type"]), str(about["options"])
        self._device = str(about["device"])
        self._broken = checked(str(about["workload"]))
        self._disks = [Disk(**disk) for disk in about["disks"]]
        self._place = place
        self._words: list[str] = []
        self._names: dict[str, str] = {}
        self._crash = capture.crash(Path(about["recording"]), about["without"])

    def examine(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Mount the state as a machine that starts again would, read everything that was promised,
        and check the file system. If that finds errors, repair it and look again: as the mount left
        it, and otherwise the state itself."""
        self._words = []
        repair = _REPAIRS.get(family(self._type))
        with self._state(job) as devices:
            found = self._look(devices, job["kept_promises"])
            if found["mounts"] and found["is_clean"]:
                return {**found, "needs_repair": False, "words": self._words}
            after = self._repaired(repair, devices, job) if repair and found["mounts"] else found
        if repair and not after["is_clean"]:
            with self._state(job) as devices:
                after = self._repaired(repair, devices, job)
        return {**after, "needs_repair": True, "words": self._words}

    def _repaired(
        self, repair: Sequence[str], devices: Sequence[Path | None], job: Mapping[str, Any]
    ) -> dict[str, Any]:
        status = self._checked(repair, devices)
        found = self._look(devices, job["kept_promises"])
        return {**found, "is_clean": found["is_clean"] and status in _REPAIRED}

    def examine_lost(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Try a way back from the loss of a disk."""
        self._words = []
        lost = job["lost"]
        number, way = int(lost["number"]), WAYS[family(self._type)][lost["way"]]
        with self._state(job) as devices, self._blank(_NEW, number) as new:
            self._names[str(new)] = "NEW DISK"
            values = {
                "{main}": str(devices[0]),
                "{new}": str(new),
                "{number}": str(number + 1),
                "{root}": str(self._place.root),
            }
            for words in way.commands:
                if "{block}" in words:
                    values["{block}"] = str(_ext_block_bytes(self._place.images / "main"))
                flags = [] if way.is_forgotten or way.is_replaced else self._flags(words, devices)
                given = [_filled(word, values) for word in words[1:]]
                if self._run([words[0], *flags, *given]) not in _REPAIRED:
                    return {**_NOTHING, "words": self._words}
            if way.is_replaced:
                devices[number] = new
            mounted = [[_filled(word, values) for word in words] for words in way.mounted]
            # Any disk of btrfs can be named: take one that is there.
            first = [*devices[:number], *devices[number + 1 :], devices[number]]
            named = first if self._type == "btrfs" else devices
            found = self._look(named, job["kept_promises"], way, mounted)
        return {**found, "words": self._words}

    @contextmanager
    def _state(self, job: Mapping[str, Any]) -> Iterator[list[Path | None]]:
        """Make the disks of a state, each behind a loop device. None stands for one that is
        gone."""
        lost = job.get("lost", {})
        with ExitStack() as stack:
            devices: list[Path | None] = []
            for number, disk in enumerate(self._disks):
                how = lost["how"] if lost and lost["number"] == number else ""
                if how == "gone":
                    devices.append(None)
                    continue
                if how == "blank":
                    devices.append(stack.enter_context(self._blank(disk.name, number)))
                else:
                    at_ns, kept = job["at_ns"], job["kept"]
                    if how == "stale":
                        at_ns = lost["begin_ns"]
                        kept = list(range(len(self._crash.pending(at_ns, self._device))))
                    devices.append(stack.enter_context(self._disk(number, at_ns, kept)))
                name = f"DISK {disk.name}" if len(self._disks) > 1 else "DISK"
                self._names[str(devices[-1])] = name
            yield devices
            if self._type == "btrfs":
                # It keeps the disks of each identity in mind, and all states share one.
                forget = ["btrfs", "device", "scan", "--forget"]
                subprocess.run(forget, capture_output=True, check=False)

    @contextmanager
    def _disk(self, number: int, at_ns: int, kept: Sequence[int]) -> Iterator[Path]:
        disk = self._disks[number]
        image = self._place.images / disk.name
        with image.open("xb") as file:
            self._crash.export(at_ns, self._device, kept, number, file.fileno(), image)
        if number == 0 and any(each.option == "journal_path" for each in self._disks):
            # Its number of the journal's device may now be that of any other disk.
            request = f"set_super_value journal_dev {_NO_DEVICE}"
            self._run(["debugfs", "-w", "-R", request, str(image)])
        try:
            with attached(image, disk.sector_bytes) as device:
                yield device
        finally:
            image.unlink()

    @contextmanager
    def _blank(self, name: str, number: int) -> Iterator[Path]:
        """Make an empty disk like one of the profile's."""
        disk, image = self._disks[number], self._place.images / name
        with image.open("xb") as file:
            file.truncate(disk.size_bytes)
        try:
            with attached(image, disk.sector_bytes) as device:
                yield device
        finally:
            image.unlink()

    def _look(
        self,
        devices: Sequence[Path | None],
        kept: Mapping[str, int],
        way: Way = WAYS["ext"][0],
        mounted: Sequence[Sequence[str]] = (),
    ) -> dict[str, Any]:
        # Several states of one xfs may be mounted at a time, and they share its identity (xfs(5)).
        shared = ["nouuid"] if self._type == "xfs" else []
        others = [] if way.is_forgotten else mount_options(self._disks, devices)
        given = [self._options] if self._options else []
        options = ",".join([*shared, *others, *way.options, *given])
        mount = ["mount", "-t", self._type, *(["-o", options] if options else [])]
        main = next(str(device) for device in devices if device is not None)
        if self._run([*mount, main, str(self._place.root)]) != 0:
            return dict(_NOTHING)
        root, files, broken = self._place.root, None, []
        try:
            is_done = all(self._run(words) == 0 for words in mounted)
            if self._broken is None:
                files = snapshot(root)
            else:
                broken = [list(each) for each in self._broken(root, kept)]
        finally:
            unmounted = self._run(["umount", str(self._place.root)])
        is_clean = unmounted == 0 and is_done
        if is_clean and not way.is_read_only:
            known = [None] * len(devices) if way.is_forgotten else devices
            check = CHECKS[family(self._type)]
            is_clean = self._run([*check, *check_flags(self._disks, known), main]) == 0
        return {"mounts": True, "is_clean": is_clean, "broken": broken, "files": files}

    def _flags(self, words: Sequence[str], devices: Sequence[Path | None]) -> list[str]:
        """Return the flags by which a check finds the other disks."""
        is_check = words[0] in {check[0] for check in CHECKS.values()} - {"btrfs"}
        return check_flags(self._disks, devices) if is_check else []

    def _checked(self, check: Sequence[str], devices: Sequence[Path | None]) -> int:
        words = [*check, *check_flags(self._disks, devices), str(devices[0])]
        return self._run(words)

    def _run(self, words: Sequence[str]) -> int:
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
            for device, name in self._names.items():
                said = re.sub(rf"{re.escape(device)}\b", name, said)
            lines = [line for line in said.splitlines() if line.strip()]
            self._words.append(f"{words[0]} ended with {done.returncode}:")
            self._words.extend(f"  {line}" for line in lines[:_MOST_LINES])
        return done.returncode


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _ext_block_bytes(image: Path) -> int:
    """Return the size of a block (s_log_block_size of the superblock, fs/ext4/ext4.h)."""
    with image.open("rb") as file:
        file.seek(1024 + 24)
        return int(1024 << min(6, int.from_bytes(file.read(4), "little")))


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
        job = json.loads(line)
        answer = examiner.examine_lost(job) if "lost" in job else examiner.examine(job)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.umask(0o077)
    main()
