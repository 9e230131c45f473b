"""Examination of a state: the steps, which are the same on this kernel and in a guest.

Only the standard library is imported here: a guest loads this over a slow share.
"""

import base64
import errno
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from fscost.crash import arrays, mounting
from fscost.crash.disks import Disk, check_flags, mount_options
from fscost.crash.families import FAMILIES, REPAIRED, family
from fscost.crash.lost import ARRAY, WAYS, Way
from fscost.crash.snapshot import snapshot
from fscost.crash.workloads import checked

_NEW = "the new disk"
"""Its image has a name that no disk of a profile can have."""
_NO_DEVICE = 60 << 8
"""A device number for local and experimental use (admin-guide/devices.txt): no disk has it."""
_NOTHING: Mapping[str, Any] = {"mounts": False, "is_clean": False, "broken": [], "files": None}
_TRIES = (arrays.PLAIN, arrays.FORCED)
"""How an array is assembled if no disk is lost. All but the first count as a repair."""
_PLAIN = WAYS["ext"][0]
_LIMIT_S = 60
_TIMED_OUT = 124
"""Exit status that stands for a program without one, as of timeout(1)."""
_MOST_LINES = 12
_USED_BYTES = 16 << 10
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Disks(Protocol):
    """Where the disks of a state come from."""

    def disk(self, number: int, job: Mapping[str, Any]) -> AbstractContextManager[Path]:
        """Yield a device with what a disk holds if the power goes at the job's instant, and its
        pending units survive."""

    def blank(self, name: str, number: int) -> AbstractContextManager[Path]:
        """Yield an empty device like a disk of the profile."""


Begin = Callable[[Sequence[Path | None]], None]


class Recorder(Protocol):
    """Disks that record what a recovery writes to them."""

    def begin(self, devices: Sequence[Path | None]) -> None:
        """The disks hold the state."""

    def end(self) -> None:
        """The recovery is over."""


class Examiner:
    """Examines the states of a recording. `root`: an empty folder to mount them on."""

    def __init__(self, about: Mapping[str, Any], disks: Disks, root: Path) -> None:
        self._type, self._options = str(about["type"]), str(about["options"])
        self._family = FAMILIES[family(self._type)]
        self._broken = checked(str(about["workload"]))
        self._all = [Disk(**disk) for disk in about["disks"]]
        members = [disk for disk in self._all if disk.is_member]
        # The file system has one disk in place of the members of its array.
        self._disks = [disk for disk in self._all if not disk.is_member or disk is members[0]]
        self._is_array = bool(members)
        self._from, self._root = disks, root
        self._words: list[str] = []
        self._names = {str(arrays.DEVICE): "ARRAY"}
        self._is_forced = False
        self._repair_s = 0.0

    def answer(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Examine a state, after the loss of a disk if the job names one; or read a file in it."""
        if "read" in job:
            return self._read(job)
        return self._examine_lost(job) if "lost" in job else self._examine(job)

    def recover(self, job: Mapping[str, Any], recorder: Recorder) -> None:
        """Mount a state as a machine that starts again would, and unmount it, while a recorder
        listens."""
        with self._state(job, recorder.begin) as devices:
            if not self._lacks_array(devices) and self._mount(devices):
                self._unmount()
            recorder.end()

    def _read(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of a file in a state, or None if it has none."""
        with self._state(job) as devices:
            if self._lacks_array(devices) or not self._mount(devices):
                return {"read": None}
            try:
                path = self._root / job["read"]
                is_file = path.is_file() and not path.is_symlink()
                content = path.read_bytes() if is_file else None
            except OSError:
                content = None
            finally:
                self._unmount()
        return {"read": None if content is None else base64.b64encode(content).decode()}

    def _examine(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Mount the state as a machine that starts again would, read everything that was promised,
        use it, and check the file system. If that finds errors, repair it and look again: as the
        mount left it, and otherwise the state itself."""
        self._words, self._repair_s = [], 0.0
        repair = self._family.repair
        with self._state(job) as devices:
            found = self._look(devices, job["kept_promises"])
            if found["mounts"] and found["is_clean"]:
                return {**found, "needs_repair": self._is_forced, "words": self._words}
        after = found
        if repair and found["mounts"]:
            with self._state(job) as devices:
                # Without the use: it may have damaged a file system that nobody had repaired.
                if self._mount(devices):
                    self._unmount()
                after = self._repaired(repair, devices, job)
        if repair and not after["is_clean"]:
            with self._state(job) as devices:
                after = self._repaired(repair, devices, job)
        repair_s = round(self._repair_s, 3)
        return {**after, "needs_repair": True, "words": self._words, "repair_s": repair_s}

    def _repaired(
        self, repair: Sequence[str], devices: Sequence[Path | None], job: Mapping[str, Any]
    ) -> dict[str, Any]:
        if self._lacks_array(devices):
            return dict(_NOTHING)
        begin_s = time.monotonic()
        status = self._checked(repair, devices)
        self._repair_s = time.monotonic() - begin_s
        found = self._look(devices, job["kept_promises"])
        return {**found, "is_clean": found["is_clean"] and status in REPAIRED}

    def _examine_lost(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Try a way back from the loss of a disk."""
        self._words = []
        lost = job["lost"]
        ways = WAYS[ARRAY if self._is_array else family(self._type)]
        number, way = int(lost["number"]), ways[lost["way"]]
        with self._state(job) as devices, self._from.blank(_NEW, number) as new:
            self._names[str(new)] = "NEW DISK"
            values = {
                "{main}": str(devices[0]),
                "{new}": str(new),
                "{number}": str(number + 1),
                "{root}": str(self._root),
            }
            for words in way.commands:
                if "{block}" in words:
                    values["{block}"] = str(_ext_block_bytes(devices[0]))
                flags = [] if way.is_forgotten or way.is_replaced else self._flags(words, devices)
                given = [_filled(word, values) for word in words[1:]]
                if self._run([words[0], *flags, *given]) not in REPAIRED:
                    return {**_NOTHING, "needs_repair": False, "words": self._words}
            if way.is_replaced:
                devices[number] = new
            mounted = [[_filled(word, values) for word in words] for words in way.mounted]
            named = devices
            if self._type == "btrfs" and not self._is_array:
                # Any disk of btrfs can be named: take one that is there.
                named = [*devices[:number], *devices[number + 1 :], devices[number]]
            found = self._look(named, job["kept_promises"], way, mounted)
        return {**found, "needs_repair": False, "words": self._words}

    @contextmanager
    def _state(
        self, job: Mapping[str, Any], begin: Begin = lambda _: None
    ) -> Iterator[list[Path | None]]:
        """Make the disks of a state, each behind a loop device, and the array of its members. None
        stands for one that is gone. `begin` is called before the recovery."""
        lost = job.get("lost", {})
        with ExitStack() as stack:
            devices: list[Path | None] = []
            for number, disk in enumerate(self._all):
                how = lost["how"] if lost and lost["number"] == number else ""
                if how == "gone":
                    devices.append(None)
                    continue
                if how == "blank":
                    devices.append(stack.enter_context(self._from.blank(disk.name, number)))
                else:
                    own = job
                    if how == "stale":
                        own = {**job, "at_ns": lost["begin_ns"], "kept": lost["all_kept"]}
                    devices.append(stack.enter_context(self._from.disk(number, own)))
                name = f"DISK {disk.name}" if len(self._all) > 1 else "DISK"
                self._names[str(devices[-1])] = name
            if self._is_array:
                # The assembly is a part of the recovery.
                begin(devices)
                devices = stack.enter_context(self._on_array(devices, lost))
            if devices[0] and any(disk.option == "journal_path" for disk in self._disks):
                # Its number of the journal's device may now be that of any other disk.
                request = f"set_super_value journal_dev {_NO_DEVICE}"
                self._run(["debugfs", "-w", "-R", request, str(devices[0])])
            if not self._is_array:
                begin(devices)
            yield devices
            if self._type == "btrfs":
                # It keeps the disks of each identity in mind, and all states share one.
                mounting.forget()

    @contextmanager
    def _on_array(
        self, devices: Sequence[Path | None], lost: Mapping[str, Any]
    ) -> Iterator[list[Path | None]]:
        """Assemble the array of a state. Yield the disks of the file system."""
        tries = [WAYS[ARRAY][lost["way"]].assembly] if lost else _TRIES
        disks = list(zip(self._all, devices, strict=True))
        members = [device for disk, device in disks if disk.is_member and device]
        others = [device for disk, device in disks if not disk.is_member]
        with arrays.assembled(members, tries, self._run) as place:
            self._is_forced = place > 0
            yield [arrays.DEVICE if place >= 0 else None, *others]

    def _lacks_array(self, devices: Sequence[Path | None]) -> bool:
        return self._is_array and devices[0] is None

    def _look(
        self,
        devices: Sequence[Path | None],
        kept: Mapping[str, int],
        way: Way = _PLAIN,
        mounted: Sequence[Sequence[str]] = (),
    ) -> dict[str, Any]:
        if self._lacks_array(devices) or not self._mount(devices, way):
            return dict(_NOTHING)
        root, files, broken = self._root, None, []
        try:
            is_done = all(self._run(words) == 0 for words in mounted)
            if not self._family.check:
                is_done = self._reads(root) and is_done
            if self._broken is None:
                files = snapshot(root)
            else:
                broken = [list(each) for each in self._broken(root, kept)]
            if not way.is_read_only and (why := unusable(root)):
                self._words.append(f"use after recovery: {why}")
                is_done = False
        finally:
            is_unmounted = self._unmount()
        is_clean = is_unmounted and is_done
        if is_clean and not way.is_read_only:
            known = [None] * len(devices) if way.is_forgotten else devices
            check = self._family.check
            flags = check_flags(self._disks, known)
            is_clean = not check or self._run([*check, *flags, _main(devices)]) == 0
        return {"mounts": True, "is_clean": is_clean, "broken": broken, "files": files}

    def _mount(self, devices: Sequence[Path | None], way: Way = _PLAIN) -> bool:
        """Mount the disks, and say if that worked. The mount recovers the file system."""
        # Several states of one xfs may be mounted at a time, and they share its identity (xfs(5)).
        shared = ["nouuid"] if self._type == "xfs" else []
        others = [] if way.is_forgotten else mount_options(self._disks, devices)
        given = [self._options] if self._options else []
        options = ",".join([*shared, *others, *way.options, *given])
        main, root = _main(devices), str(self._root)
        if self._family.before:
            self._run([*self._family.before, main])
        failed = mounting.mount(main, root, self._type, options)
        if failed is None:
            # -i: the helper of nilfs2 would start its cleaner, which changes the state.
            words = ["mount", "-i", "-t", self._type, *(["-o", options] if options else [])]
            return self._run([*words, main, root]) == 0
        if failed:
            self._words.append(f"mount(2) of {self._names.get(main, main)} failed: {failed}")
        return not failed

    def _unmount(self) -> bool:
        if failed := mounting.unmount(str(self._root)):
            self._words.append(f"umount(2) failed: {failed}")
        return not failed

    def _reads(self, root: Path) -> bool:
        """True if all that has a name can be read."""
        try:
            for path in root.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    path.read_bytes()
        except OSError as error:
            self._words.append(f"read: {error}")
            return False
        return True

    def _flags(self, words: Sequence[str], devices: Sequence[Path | None]) -> list[str]:
        """Return the flags by which a check finds the other disks."""
        is_check = words[0] == self._family.check[0] != "btrfs"
        return check_flags(self._disks, devices) if is_check else []

    def _checked(self, check: Sequence[str], devices: Sequence[Path | None]) -> int:
        words = [*check, *check_flags(self._disks, devices), str(devices[0])]
        return self._run(words)

    def _run(self, words: Sequence[str]) -> int:
        """Run a program, and keep its name, its exit status and what it said, if it failed."""
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._words.append(f"{words[0]} did not end within {_LIMIT_S} s")
            return _TIMED_OUT
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace")
            for device, name in self._names.items():
                said = re.sub(rf"{re.escape(device)}\b", name, said)
            lines = [line for line in said.splitlines() if line.strip()]
            self._words.append(f"{words[0]} ended with {done.returncode}:")
            self._words.extend(f"  {line}" for line in lines[:_MOST_LINES])
        return done.returncode


def unusable(root: Path) -> str:
    """Make and remove a file. Return why that fails; a full file system is no reason. The check
    that follows sees which blocks and inodes it took."""
    folder = root / ".fscost-used"
    try:
        folder.mkdir()
        file = folder / "file"
        try:
            file.write_bytes(bytes(_USED_BYTES))
        except OSError as error:
            if error.errno not in _FULL:
                raise
        file.unlink(missing_ok=True)
        folder.rmdir()
    except OSError as error:
        return "" if error.errno in _FULL else error.strerror or str(error)
    return ""


def _main(devices: Sequence[Path | None]) -> str:
    """Return the first disk that is there."""
    return next(str(device) for device in devices if device is not None)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _ext_block_bytes(device: Path | None) -> int:
    """Return the size of a block (s_log_block_size of the superblock, fs/ext4/ext4.h)."""
    if device is None:
        raise FileNotFoundError("the main disk")
    with device.open("rb") as file:
        file.seek(1024 + 24)
        return int(1024 << min(6, int.from_bytes(file.read(4), "little")))
