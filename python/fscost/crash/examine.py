"""Examination of states in a mount namespace of its own: `python -m fscost.crash.examine`.

The program reads one job a line from standard input and answers with one line. Everything that it
mounts belongs to its namespace, and its loop devices detach by themselves, so that nothing stays
behind when it is killed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscost import capture
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
    image: Path
    root: Path


class _Examiner:
    def __init__(self, about: Mapping[str, Any], place: _Place) -> None:
        self._type, self._options = str(about["type"]), str(about["options"])
        self._device = str(about["device"])
        self._broken = WORKLOADS[str(about["workload"])].broken
        self._place = place
        self._words: list[str] = []
        self._crash = capture.crash(Path(about["recording"]), about.get("without"))

    def examine(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Mount the state as a machine that starts again would, read everything that was promised,
        and check the file system. If that finds errors, repair the state and look again."""
        self._words = []
        self._write(job)
        found = self._look(job["kept_promises"])
        if found["mounts"] and found["is_clean"]:
            return {**found, "needs_repair": False, "words": self._words}
        repair = _REPAIRS.get(family(self._type))
        if repair is None:
            return {**found, "needs_repair": True, "words": self._words}
        self._write(job)
        status = self._run([*repair, str(self._place.image)])
        after = self._look(job["kept_promises"])
        return {
            "mounts": after["mounts"],
            "is_clean": after["is_clean"] and status in _REPAIRED,
            "broken": after["broken"],
            "needs_repair": True,
            "words": self._words,
        }

    def _write(self, job: Mapping[str, Any]) -> None:
        self._place.image.unlink(missing_ok=True)
        with self._place.image.open("xb") as file:
            self._crash.export(
                job["at_ns"], self._device, job["kept"], 0, file.fileno(), self._place.image
            )

    def _look(self, kept: Mapping[str, int]) -> dict[str, Any]:
        # Several states of one xfs may be mounted at a time, and they share its identity (xfs(5)).
        shared = "nouuid" if self._type == "xfs" else ""
        options = ",".join(filter(None, ["loop", shared, self._options]))
        mount = ["mount", "-t", self._type, "-o", options]
        if self._run([*mount, str(self._place.image), str(self._place.root)]) != 0:
            return {"mounts": False, "is_clean": False, "broken": []}
        try:
            broken = [list(each) for each in self._broken(self._place.root, kept)]
        finally:
            unmounted = self._run(["umount", str(self._place.root)])
        check = CHECKS[family(self._type)]
        is_clean = unmounted == 0 and self._run([*check, str(self._place.image)]) == 0
        return {"mounts": True, "is_clean": is_clean, "broken": broken}

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
            lines = done.stdout.decode(errors="replace").splitlines()
            said = [line.replace(f"{self._place.image}", "DISK") for line in lines if line.strip()]
            self._words.append(f"{words[0]} ended with {done.returncode}:")
            self._words.extend(f"  {line}" for line in said[:_MOST_LINES])
        return done.returncode


def main() -> None:
    """Answer jobs until standard input ends."""
    about = json.loads(sys.stdin.readline())
    folder = Path(about["folder"])
    place = _Place(folder / "image", folder / "root")
    # The recording is opened before the mount hides it.
    examiner = _Examiner(about, place)
    subprocess.run(["mount", "-t", "tmpfs", "fscost-crash", folder], check=True)
    place.root.mkdir()
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(examiner.examine(json.loads(line)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.umask(0o077)
    main()
